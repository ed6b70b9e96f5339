//! `cargo xtask size`: the size of the release binary and the number of crates in it, with bounds.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::command::{self, cargo, output, target_directory};

/// The maximum size of the command `teamster` with its default features, in bytes.
const MAX_BYTES: u64 = 24 << 20;

/// The maximum number of crates of each form of the command, without those of builds and tests.
const FORMS: &[Form] = &[
    Form { name: "without the gateway", features: &["--no-default-features"], max_crates: 170 },
    Form { name: "with the gateway and the chat channels", features: &[], max_crates: 290 },
];

/// A form of the command, by its features.
struct Form {
    name: &'static str,
    features: &'static [&'static str],
    max_crates: usize,
}

/// Builds the command, and compares the figures with their bounds.
pub(crate) fn run() -> Result<()> {
    for Form { name, features, max_crates } in FORMS {
        let crates = crates(features)?;
        println!("the command {name} has {crates} crates (at most {max_crates})");
        ensure!(
            crates <= *max_crates,
            "the command {name} has too many crates: `cargo tree --package teamster-cli {}` shows them",
            features.join(" ")
        );
    }
    command::run(cargo(&["build", "--release", "--package", "teamster-cli", "--bin", "teamster"]))?;
    let file = target_directory()?.join("release/teamster");
    let bytes = fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?.len();
    println!("the command has {bytes} bytes (at most {MAX_BYTES})");
    ensure!(bytes <= MAX_BYTES, "the command is too large: `cargo bloat --release --crates` shows why");
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
