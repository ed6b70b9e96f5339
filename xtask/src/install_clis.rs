//! `cargo xtask install-clis`: the agent CLIs pinned in `conformance/package.json`, installed and verified.
//!
//! The lock file is only read: it names no download host, so that it works with whatever registry the machine uses.
//! Install scripts are not run by npm, which may or may not run them by version and setting; the one that a CLI needs
//! is run here by name.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::command::{output, program, root, run as run_command};

struct Cli {
    package: &'static str,
    command: &'static str,
    /// Relative to the package; puts the machine's binary in the place of a stub.
    install_script: Option<&'static str>,
}

const CLIS: [Cli; 1] =
    [Cli { package: "@anthropic-ai/claude-code", command: "claude", install_script: Some("install.cjs") }];

/// The folder with the pinned CLIs' commands.
pub(crate) fn bin_dir() -> PathBuf {
    conformance().join("node_modules/.bin")
}

pub(crate) fn run() -> Result<()> {
    let _one_at_a_time = lock()?;
    if verify().is_err() {
        install()?;
    }
    for found in verify().context("the agent CLIs were installed, but are not as pinned")? {
        println!("{found}");
    }
    Ok(())
}

fn conformance() -> PathBuf {
    root().join("conformance")
}

/// Two installations at once would delete each other's files.
fn lock() -> Result<File> {
    let folder = root().join("target");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join("install-clis.lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

fn install() -> Result<()> {
    let mut npm = program("npm", &["ci", "--ignore-scripts", "--include=optional", "--no-audit", "--no-fund"]);
    npm.current_dir(conformance());
    run_command(npm)?;
    for cli in &CLIS {
        if let Some(script) = cli.install_script {
            let mut node = program("node", &[script]);
            node.current_dir(conformance().join("node_modules").join(cli.package));
            run_command(node)?;
        }
    }
    Ok(())
}

/// One line for each CLI, when every package has the locked version and every CLI says the pinned one.
fn verify() -> Result<Vec<String>> {
    let conformance = conformance();
    for (folder, locked) in locked_packages(&read_json(&conformance.join("package-lock.json"))?) {
        match read_json(&conformance.join(&folder).join("package.json")) {
            Ok(installed) => ensure!(
                installed.get("version") == Some(&Value::String(locked.version.clone())),
                "{folder} is not {}",
                locked.version
            ),
            Err(error) if !locked.optional => return Err(error),
            Err(_) => {} // made for another system
        }
    }
    let manifest = read_json(&conformance.join("package.json"))?;
    CLIS.iter().map(|cli| verify_cli(cli, &manifest)).collect()
}

fn verify_cli(cli: &Cli, manifest: &Value) -> Result<String> {
    let pinned = manifest.get("dependencies").and_then(|all| all.get(cli.package)).and_then(Value::as_str);
    let pinned = pinned.with_context(|| format!("conformance/package.json does not pin {}", cli.package))?;
    let mut command = program(bin_dir().join(cli.command), &["--version"]);
    command.env("DISABLE_AUTOUPDATER", "1");
    match output(command) {
        Some(said) if said.split_whitespace().any(|word| word == pinned) => Ok(format!("{}: {said}", cli.command)),
        Some(said) => bail!("`{} --version` says {said:?}, but {pinned} is pinned", cli.command),
        None => bail!("`{} --version` does not run", cli.command),
    }
}

struct Locked {
    version: String,
    /// Installed only where its system and processor match.
    optional: bool,
}

/// The packages of a lock file by their folder.
fn locked_packages(lock: &Value) -> BTreeMap<String, Locked> {
    let packages = lock.get("packages").and_then(Value::as_object).into_iter().flatten();
    packages
        .filter(|(folder, _)| folder.starts_with("node_modules/"))
        .filter_map(|(folder, package)| {
            let version = package.get("version")?.as_str()?.to_owned();
            let optional = package.get("optional").and_then(Value::as_bool).unwrap_or(false);
            Some((folder.clone(), Locked { version, optional }))
        })
        .collect()
}

fn read_json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{CLIS, conformance, locked_packages, read_json};

    #[test]
    fn the_lock_file_names_no_download_host() {
        let lock = read_json(&conformance().join("package-lock.json")).unwrap();
        for (folder, package) in lock["packages"].as_object().unwrap() {
            assert!(
                package.get("resolved").is_none(),
                "{folder}: remove \"resolved\" (conformance/.npmrc keeps it out)"
            );
        }
    }

    #[test]
    fn every_cli_is_pinned_to_one_version_and_locked_to_it() {
        let manifest = read_json(&conformance().join("package.json")).unwrap();
        let locked = locked_packages(&read_json(&conformance().join("package-lock.json")).unwrap());
        for cli in &CLIS {
            let pinned = manifest["dependencies"][cli.package].as_str().unwrap();
            assert!(pinned.starts_with(|first: char| first.is_ascii_digit()), "{} is a range: {pinned}", cli.package);
            assert_eq!(locked[&format!("node_modules/{}", cli.package)].version, pinned);
        }
        assert_eq!(manifest["dependencies"].as_object().map(serde_json::Map::len), Some(CLIS.len()));
    }

    #[test]
    fn a_lock_file_without_packages_is_an_empty_list() {
        assert!(locked_packages(&Value::Null).is_empty());
    }
}
