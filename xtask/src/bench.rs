//! `cargo xtask bench`: the benchmarks of `benches/`.

use anyhow::Result;

use crate::command;

pub(crate) fn run() -> Result<()> {
    command::run(command::cargo(&["bench", "--package", "teamster-benches"]))
}
