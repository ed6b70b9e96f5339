//! `cargo xtask size`: the size of the release binary and the number of crates in it, with bounds.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::command::{self, cargo, output, target_directory};

/// The maximum size of the file of the command `teamster` for release, in bytes.
const MAX_BYTES: u64 = 24 << 20;

/// The maximum number of crates of the command, without those of builds and tests.
const MAX_CRATES: usize = 170;

/// The forms of the command, with the options of cargo that select their features.
const FORMS: [(&str, &[&str]); 2] =
    [("without the gateway", &["--no-default-features"]), ("with the gateway and the chat channels", &[])];

/// Builds each form of the command, and compares its figures with the bounds.
pub(crate) fn run() -> Result<()> {
    FORMS.iter().try_for_each(|(form, features)| check(form, features))
}

fn check(form: &str, features: &[&str]) -> Result<()> {
    let crates = crates(features)?;
    let mut build = cargo(&["build", "--release", "--package", "teamster-cli", "--bin", "teamster"]);
    build.args(features);
    command::run(build)?;
    let file = target_directory()?.join("release/teamster");
    let bytes = fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?.len();
    println!("the command {form} has {bytes} bytes (at most {MAX_BYTES}) and {crates} crates (at most {MAX_CRATES})");
    let features = features.join(" ");
    ensure!(
        bytes <= MAX_BYTES,
        "the command {form} is too large: `cargo bloat --release --crates {features}` shows why"
    );
    ensure!(
        crates <= MAX_CRATES,
        "the command {form} has too many crates: `cargo tree --package teamster-cli {features}` shows them"
    );
    Ok(())
}

fn crates(features: &[&str]) -> Result<usize> {
    let mut tree = cargo(&["tree", "--package", "teamster-cli", "--edges", "normal", "--prefix", "none"]);
    tree.args(["--format", "{p}"]).args(features);
    let tree = output(tree).context("`cargo tree` failed")?;
    let mut names: Vec<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names.len())
}
