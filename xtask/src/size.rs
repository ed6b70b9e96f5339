//! `cargo xtask size`: the size of the release binary and the number of crates in it, with bounds.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::command::{self, cargo, output, target_directory};

const FORMS: &[Form] = &[
    Form { name: "without the gateway", features: &["--no-default-features"], max_crates: 170, max_bytes: 24 << 20 },
    Form { name: "with the gateway and the chat channels", features: &[], max_crates: 290, max_bytes: 40 << 20 },
];

/// A form of the command, by its features, and its bounds.
struct Form {
    name: &'static str,
    features: &'static [&'static str],
    /// The maximum number of crates, without those of builds and tests.
    max_crates: usize,
    /// The maximum size of the file for release, in bytes.
    max_bytes: u64,
}

/// Builds each form of the command, and compares its figures with their bounds.
pub(crate) fn run() -> Result<()> {
    FORMS.iter().try_for_each(check)
}

fn check(Form { name, features, max_crates, max_bytes }: &Form) -> Result<()> {
    let crates = crates(features)?;
    println!("the command {name} has {crates} crates (at most {max_crates})");
    ensure!(
        crates <= *max_crates,
        "the command {name} has too many crates: `cargo tree --package teamster-cli {}` shows them",
        features.join(" ")
    );
    let mut build = cargo(&["build", "--release", "--package", "teamster-cli", "--bin", "teamster"]);
    build.args(*features);
    command::run(build)?;
    let file = target_directory()?.join("release/teamster");
    let bytes = fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?.len();
    println!("the command {name} has {bytes} bytes (at most {max_bytes})");
    ensure!(
        bytes <= *max_bytes,
        "the command {name} is too large: `cargo bloat --release --crates {}` shows why",
        features.join(" ")
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
