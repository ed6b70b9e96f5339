//! `cargo xtask soak tests`: all ordinary tests, many times and without retries, on idle and on busy cores.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::busy_cores::with_busy_cores;
use super::failures::{Cores, Failures, Round};
use crate::command::{run as run_command, run_tests};
use crate::install_clis;
use crate::junit;
use crate::python;
use crate::test::{SOAK_PROFILE, every_test};
use crate::tools::Tools;
use crate::totals::Totals;

/// Runs the tests this number of times on idle cores and on busy cores, in turns. It continues after a failure.
///
/// # Errors
/// A test has failed in any round, or a round could not be run.
pub(super) fn run(times: u32, with_conformance: bool) -> Result<()> {
    let tools = Tools::find();
    ensure!(tools.nextest, "cargo-nextest is not installed (get it: cargo install --locked cargo-nextest)");
    if with_conformance {
        tools.require_all()?;
        install_clis::run()?;
        if !python::is_left_out() {
            python::install_for_tests()?;
        }
    }
    // Built before the first round.
    let mut build = every_test(with_conformance);
    build.arg("--no-run");
    run_command(build)?;

    let began = Instant::now();
    let mut failures = Failures::default();
    for number in 1..=times {
        for cores in [Cores::Idle, Cores::Busy] {
            println!("\n== round {number} of {times}, {cores} cores");
            let round = match cores {
                Cores::Idle => round(with_conformance),
                Cores::Busy => with_busy_cores(|| round(with_conformance)),
            };
            let round = round.unwrap_or_else(|error| Round::NotRun(format!("{error:#}")));
            println!("{round}");
            failures.add(cores, round);
        }
    }
    println!("\n{failures}\nThe rounds took {} s.", began.elapsed().as_secs());
    if failures.is_empty() { Ok(()) } else { bail!("tests failed: the list above has each of them") }
}

/// Runs all tests once.
fn round(with_conformance: bool) -> Result<Round> {
    let file = junit::path(SOAK_PROFILE)?;
    junit::forget(&file)?;
    let ended = run_tests(every_test(with_conformance), &mut Totals::default());
    match junit::read(&file) {
        Ok(records) => Ok(Round::Run(records)),
        Err(error) => Err(ended.err().unwrap_or(error)).context("the tests could not be run"),
    }
}
