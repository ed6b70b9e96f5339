//! A warm turn against a new process, with the real CLIs.

use anyhow::Result;

use crate::bench::results::Results;
use crate::command::{cargo, output};

/// The name of the row.
pub(crate) const NAME: &str = "warm";

/// Measures, and keeps what was printed. If the CLIs are not installed, the page keeps its last numbers.
pub(crate) fn measure(results: &Results) -> Result<()> {
    println!("{NAME}: `cargo xtask latency`");
    let latency = cargo(&["run", "--quiet", "--package", "teamster-conformance", "--example", "latency"]);
    let Some(text) = output(latency) else {
        println!("  left out: `cargo xtask latency` failed; does `cargo xtask install-clis` succeed?");
        return Ok(());
    };
    results.save_text(NAME, &text)
}
