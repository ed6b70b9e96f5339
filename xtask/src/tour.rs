//! `cargo xtask tour`: writes docs/tour.md and its pictures, or checks that they are current.

use anyhow::Result;

use crate::command::{cargo, run as run_command};

/// Write docs/tour.md and its pictures: what the command shows, on scripted agents
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fail if a file is not current, and write nothing
    #[arg(long)]
    check: bool,
}

/// Runs the test that plays the tour.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut test = cargo(&["test", "--quiet", "--package", "teamster-cli", "--test", "it", "tour::"]);
    if args.check {
        test.env_remove("UPDATE_DOCS");
    } else {
        test.env("UPDATE_DOCS", "1");
    }
    run_command(test)
}
