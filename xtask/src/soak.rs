//! `cargo xtask soak`: the survival suite again and again while every core is busy.
//!
//! The load is threads of this process, so that it ends with it, however that ends.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::command::run_tests;
use crate::install_clis;
use crate::test::{Column, survival};
use crate::tools::Tools;
use crate::totals::Totals;

/// The number of operations between two checks for the end.
const TURNS: u64 = 1_000_000;

/// Run the survival suite many times in a row while every core is kept busy; stop at the first failure
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often the suite is run
    #[arg(long, default_value_t = 50, value_name = "N")]
    times: u32,
    /// With the real CLIs, not only the fake agent
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
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

    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..cores {
            scope.spawn(|| burn(&over));
        }
        let rounds = rounds(args.times, &tools, column);
        over.store(true, Ordering::Relaxed);
        rounds
    })
}

fn rounds(times: u32, tools: &Tools, column: Column) -> Result<()> {
    let mut totals = Totals::default();
    for round in 1..=times {
        let began = Instant::now();
        println!("\n== round {round} of {times}");
        run_tests(survival(tools, column), &mut totals).with_context(|| format!("round {round} of {times} failed"))?;
        println!("round {round} of {times} passed in {} s", began.elapsed().as_secs());
    }
    println!("\nAll {times} rounds passed: {totals}");
    Ok(())
}

/// Keeps a core busy.
fn burn(over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        black_box((0..TURNS).fold(0_u64, |sum, turn| sum.wrapping_mul(31).wrapping_add(turn)));
    }
}
