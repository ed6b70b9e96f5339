//! `cargo xtask bench gateway`: what `teamster serve` costs, seen from its clients.

use anyhow::Result;

use crate::bench::measure;
use crate::command::{cargo, run as run_command, target_directory};

/// Builds the programs and prints the figures.
pub(crate) fn run() -> Result<()> {
    measure::build()?;
    let release = target_directory()?.join("release");
    let mut figures =
        cargo(&["run", "--release", "--quiet", "--package", "teamster-benches", "--example", "gateway", "--"]);
    figures.arg(release.join("teamster")).arg(release.join("examples/fake_cli"));
    run_command(figures)
}
