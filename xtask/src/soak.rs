//! `cargo xtask soak`: the long tests, which no check of a change runs.

mod all_tests;
mod busy_cores;
mod failures;

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::ValueEnum;

use self::busy_cores::with_busy_cores;
use crate::command::{cargo, run_tests};
use crate::install_clis;
use crate::test::{Column, survival};
use crate::tools::Tools;
use crate::totals::Totals;

/// The size of the gateway's chaos test.
const CHAOS: &str = "messages=2000,conversations=100,kills=50,rounds=3";

/// The number of random sequences of operations for the store.
const CASES: &str = "10000";

/// Run tests many times in a row
///
/// `tests` continues after a failure, and ends with one list of the tests that failed. The others stop at the first failure.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is run
    #[arg(value_enum, default_value_t = Soak::Survival)]
    name: Soak,
    /// How often it is run [default: 50 for survival, 10 for tests, 1 for the others]
    #[arg(long, value_name = "N")]
    times: Option<u32>,
    /// With the real CLIs, not only the fake agent
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Soak {
    /// The survival suite, while every core is kept busy
    Survival,
    /// All ordinary tests without retries, on idle and on busy cores; with `--all` also the conformance tests
    Tests,
    /// The gateway: 2,000 messages, 100 conversations, 50 kills, and a crash at each failpoint
    Gateway,
    /// The store: 10,000 random sequences of operations, compared with the model
    Store,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match args.name {
        Soak::Survival => survival_on_busy_cores(args),
        Soak::Tests => all_tests::run(args.times.unwrap_or(10), args.all),
        Soak::Gateway => rounds(args.times.unwrap_or(1), &gateway),
        Soak::Store => rounds(args.times.unwrap_or(1), &store),
    }
}

/// Returns the command of the gateway's chaos test. It is no test run of nextest, which would end it at a time limit.
fn gateway() -> Command {
    println!("TEAMSTER_CHAOS={CHAOS}");
    let mut command = cargo(&["test", "--package", "teamster-cli", "--all-features", "--test", "chaos"]);
    command.args(["--", "--nocapture", "--test-threads=1"]).env("TEAMSTER_CHAOS", CHAOS);
    command
}

/// Returns the command of the store's property test.
fn store() -> Command {
    println!("PROPTEST_CASES={CASES}");
    let mut command = cargo(&["test", "--package", "teamster-store", "--all-features", "--test", "stateful"]);
    command.env("PROPTEST_CASES", CASES);
    command
}

fn survival_on_busy_cores(args: &Args) -> Result<()> {
    let tools = Tools::find();
    let column = if args.all {
        tools.require_node()?;
        install_clis::run()?;
        Column::Every
    } else {
        Column::Fake
    };
    // Built before the load starts.
    let mut build = survival(&tools, column);
    build.arg(if tools.nextest { "--no-run" } else { "--list" });
    crate::command::run(build)?;

    with_busy_cores(|| rounds(args.times.unwrap_or(50), &|| survival(&tools, column)))
}

fn rounds(times: u32, command: &dyn Fn() -> Command) -> Result<()> {
    let mut totals = Totals::default();
    for round in 1..=times {
        let began = Instant::now();
        println!("\n== round {round} of {times}");
        run_tests(command(), &mut totals).with_context(|| format!("round {round} of {times} failed"))?;
        println!("round {round} of {times} passed in {} s", began.elapsed().as_secs());
    }
    println!("\nAll {times} rounds passed: {totals}");
    Ok(())
}
