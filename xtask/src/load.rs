//! `cargo xtask load`: measures the resources of many concurrent runs in one process.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::{cargo, run as run_command};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The number of concurrent runs
    #[arg(long, default_value_t = 500)]
    runs: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    run_command(cargo(&["build", "--release", "--package", "teamster-testkit", "--bin", "teamster-fake-agent"]))?;
    let agent = release()?.join("teamster-fake-agent");
    let agent = agent.canonicalize().with_context(|| format!("{} is not there", agent.display()))?;
    let temporary = tempfile::tempdir().context("cannot create a temporary directory")?;
    let mut load = cargo(&["run", "--release", "--quiet", "--package", "teamster-benches", "--example", "load", "--"]);
    load.arg(args.runs.to_string()).arg(agent).env("TMPDIR", temporary.path()).env_remove("XDG_RUNTIME_DIR");
    run_command(load)
}

/// Returns the directory of release builds: it is beside that of xtask's own build.
fn release() -> Result<PathBuf> {
    let xtask = env::current_exe().context("cannot find xtask's own file")?;
    let target = xtask.parent().and_then(Path::parent).context("xtask lies in no target directory")?;
    Ok(target.join("release"))
}
