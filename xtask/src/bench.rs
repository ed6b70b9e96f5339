//! `cargo xtask bench`: the benchmarks of `benches/`, and the comparison with published peers.

mod count;
mod document;
mod form;
mod gateway;
mod growth;
mod machine;
mod measure;
mod peers;
mod plot;
mod prose;
mod results;
mod rows;
mod start;
mod statistics;
mod subjects;
mod table;
mod targets;
mod warm;

use anyhow::{Context, Result, bail};

use crate::command::{self, cargo, root};
use measure::Bench;
use peers::Peers;
use results::Results;
use rows::Row;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Measure Teamster beside published peers and floors, and write docs/performance.md
    Compare(Compare),
    /// Count the instructions of recorded runs, and compare them with benches/instructions.json (needs valgrind)
    Count {
        /// Write the file instead
        #[arg(long)]
        update: bool,
    },
    /// Measure each step between `run()` and the first event, and between the CLI's exit and `done`; write docs/performance.md
    Start {
        /// Run each process so many times
        #[arg(long, default_value_t = 15)]
        rounds: u32,
    },
    /// Measure the gateway as its clients see it, and print the figures of docs/gateway.md
    Gateway,
    /// Measure what ten times the work costs, and write docs/performance.md
    Growth {
        /// Run each subject so many times
        #[arg(long, default_value_t = 3)]
        rounds: u32,
    },
}

#[derive(clap::Args)]
struct Compare {
    /// Run each subject only twice
    #[arg(long)]
    quick: bool,
    /// Run each subject so many times, in turn
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Measure only these rows; the others keep their last results
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
    /// Write the page from the last results, without measuring
    #[arg(long)]
    page_only: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.command {
        None => command::run(cargo(&["bench", "--package", "teamster-benches"])),
        Some(Command::Compare(compare)) => self::compare(compare),
        Some(Command::Count { update }) => count::run(*update),
        Some(Command::Start { rounds }) => {
            with_bench(measure::build_examples, |bench, results| start::measure(bench, *rounds, results))
        }
        Some(Command::Gateway) => gateway::run(),
        Some(Command::Growth { rounds }) => {
            with_bench(measure::build, |bench, results| growth::measure(bench, *rounds, results))
        }
    }
}

/// Compares the number of instructions with the baseline.
pub(crate) fn check_counts() -> Result<()> {
    count::run(false)
}

/// Measures without the peers, and writes the page.
fn with_bench(build: fn() -> Result<()>, measure: impl FnOnce(&Bench<'_>, &Results) -> Result<()>) -> Result<()> {
    let results = results()?;
    let peers = Peers::absent();
    build()?;
    measure(&Bench::new(&peers)?, &results)?;
    document::write(&rows::all(), &results).context("cannot write docs/performance.md")
}

fn results() -> Result<Results> {
    Results::in_directory(root().join("target/bench-compare"))
}

fn compare(args: &Compare) -> Result<()> {
    let rows = rows::all();
    for name in args.only.iter().filter(|name| *name != warm::NAME) {
        if !rows.iter().any(|row| row.name == name) {
            let names: Vec<_> = rows.iter().map(|row| row.name).chain([warm::NAME]).collect();
            bail!("there is no row {name:?}; there are: {}", names.join(", "));
        }
    }
    let results = results()?;
    if !args.page_only {
        let chosen: Vec<&Row> =
            rows.iter().filter(|row| args.only.is_empty() || args.only.iter().any(|name| row.name == name)).collect();
        if !chosen.is_empty() {
            measure_rows(args, &chosen, &results)?;
        }
        if args.only.is_empty() || args.only.iter().any(|name| name == warm::NAME) {
            warm::measure(&results)?;
        }
    }
    document::write(&rows, &results).context("cannot write docs/performance.md")
}

fn measure_rows(args: &Compare, rows: &[&Row], results: &Results) -> Result<()> {
    let peers = Peers::install();
    measure::build()?;
    let bench = Bench::new(&peers)?;
    let rounds = if args.quick { 2 } else { args.rounds };
    for row in rows {
        let measured = bench.measure(row, rounds)?;
        println!("\n{}", table::text(row, &measured));
        results.save(row.name, &measured)?;
    }
    Ok(())
}
