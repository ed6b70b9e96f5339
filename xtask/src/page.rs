//! `cargo xtask page` and `cargo xtask page-shots`: builds the gateway's web page, checks it, and makes pictures of it.
//!
//! The page is written in `web/`. Its built files are committed, so that `cargo build` needs no Node.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{cargo, program, root, run as run_command, run_quietly, run_tests, target_directory};
use crate::totals::Totals;

/// Where the built files are committed.
const DIST: &str = "crates/teamster-gateway/src/web/dist";

/// The variable that skips the conformance tests of the page.
pub(crate) const WITHOUT_BROWSER: &str = "TEAMSTER_WITHOUT_BROWSER";

/// What a user of Debian installs for the tests in a browser.
const PACKAGES: &str = "chromium fonts-dejavu-core fonts-noto-color-emoji";

/// Build the gateway's web page into the files that the command embeds
///
/// After it, `cargo build` embeds the new files.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if the committed files differ from a new build, and run all tests of the page
    #[arg(long)]
    check: bool,
}

/// Make pictures of the page's states, in both themes and three widths
#[derive(clap::Args)]
pub(crate) struct ShotsArgs {
    /// Where the pictures are written
    #[arg(default_value = "target/page-shots")]
    directory: PathBuf,
    /// Only these states, separated by commas
    #[arg(long)]
    only: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if !args.check {
        install()?;
        return run_command(npm(&["run", "--silent", "build"]));
    }
    let mut totals = Totals::default();
    check(&mut totals)?;
    println!("{totals}");
    Ok(())
}

pub(crate) fn shots(args: &ShotsArgs) -> Result<()> {
    install()?;
    let mut command = browser_tests("shots")?;
    command.env("PAGE_SHOTS", root().join(&args.directory));
    if let Some(only) = &args.only {
        command.env("PAGE_SHOTS_ONLY", only);
    }
    run_command(command)
}

/// Compares the committed files with a new build, and runs the tests of the page.
pub(crate) fn check(totals: &mut Totals) -> Result<()> {
    install()?;
    compare()?;
    run_command(npm(&["exec", "--no", "--", "tsc", "--project", "."]))?;
    run_tests(npm(&["exec", "--no", "--", "vitest", "run", "--project", "unit"]), totals)?;
    run_tests(browser_tests("browser")?, totals)
}

/// Returns what the tests in a browser lack on this machine.
pub(crate) fn missing() -> Option<String> {
    (!chromium().is_file()).then(|| {
        format!(
            "Chromium (to test the page; get it: apt-get install --no-install-recommends {PACKAGES}, or set CHROMIUM)"
        )
    })
}

fn chromium() -> PathBuf {
    env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from)
}

fn npm(args: &[&str]) -> Command {
    let mut command = program("npm", args);
    command.current_dir(root().join("web"));
    command
}

/// Installs the locked packages. Their install scripts are not run.
fn install() -> Result<()> {
    run_quietly(npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"]))
}

/// Builds the page elsewhere, and compares each file with the committed one.
fn compare() -> Result<()> {
    let built = target_directory()?.join("page");
    let mut command = npm(&["run", "--silent", "build", "--", "--emptyOutDir", "--outDir"]);
    command.arg(&built);
    run_command(command)?;
    let (built, committed) = (files(&built)?, files(&root().join(DIST))?);
    let names = built.keys().chain(committed.keys());
    let mut different: Vec<_> = names.filter(|name| built.get(*name) != committed.get(*name)).cloned().collect();
    different.dedup();
    ensure!(different.is_empty(), "{DIST} is not current: {}; run `cargo xtask page`", different.join(", "));
    Ok(())
}

/// Returns the content of the files below a directory, by their path in it.
fn files(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(directory)?.to_string_lossy().into_owned();
            found.insert(name, fs::read(&path)?);
        }
    }
    Ok(found)
}

/// Returns the command that runs tests against a gateway with a scripted agent.
fn browser_tests(project: &str) -> Result<Command> {
    if let Some(missing) = missing() {
        bail!("missing on this machine: {missing}");
    }
    // The features of the other checks, so that no crate is compiled twice.
    run_command(cargo(&["build", "--workspace", "--all-features", "--bin", "teamster"]))?;
    let mut command = npm(&["exec", "--no", "--", "vitest", "run", "--project", project]);
    command.env("TEAMSTER_BIN", target_directory()?.join("debug/teamster"));
    command.env("CHROMIUM", chromium());
    Ok(command)
}
