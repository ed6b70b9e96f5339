//! `cargo xtask size`: the size of the release binary and the number of crates in it, with bounds.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::command::{self, cargo, output, target_directory};

/// The maximum size of the command `teamster`, in bytes.
const MAX_BYTES: u64 = 24 << 20;

/// The maximum number of crates of the command, of all features, and without those of builds and tests.
const MAX_CRATES: usize = 170;

/// Builds the command, and compares both figures with their bounds.
pub(crate) fn run() -> Result<()> {
    let crates = crates()?;
    command::run(cargo(&["build", "--release", "--package", "teamster-cli", "--bin", "teamster"]))?;
    let file = target_directory()?.join("release/teamster");
    let bytes = fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?.len();
    println!("the command has {bytes} bytes (at most {MAX_BYTES}) and {crates} crates (at most {MAX_CRATES})");
    ensure!(bytes <= MAX_BYTES, "the command is too large: `cargo bloat --release --crates` shows why");
    ensure!(crates <= MAX_CRATES, "the command has too many crates: `cargo tree --package teamster-cli` shows them");
    Ok(())
}

fn crates() -> Result<usize> {
    let tree = ["tree", "--package", "teamster-cli", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let tree = output(cargo(&tree)).context("`cargo tree` failed")?;
    let mut names: Vec<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names.len())
}
