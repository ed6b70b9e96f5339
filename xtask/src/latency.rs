//! `cargo xtask latency`: how long the real CLIs take to begin an answer.

use anyhow::Result;

use crate::command::{cargo, run as run_command};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Turns that are measured
    #[arg(long, default_value_t = 11)]
    turns: u32,
    /// Which agents; all if none is named
    agents: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut latency = cargo(&["run", "--quiet", "--package", "teamster-conformance", "--example", "latency", "--"]);
    latency.arg("--turns").arg(args.turns.to_string()).args(&args.agents);
    run_command(latency)
}
