//! The floors: what a host costs that does nothing but read.
//!
//! `floor lines|typed|raw TASK FORM CLI RUNS` prints one line of JSON.
//!
//! - `lines` finds the ends of lines in a large buffer, and parses nothing.
//! - `typed` also parses each line into borrowed types, on the same thread.
//! - `raw` starts the CLI without a library; its reader is Tokio's, which is a bare wake-up for each line.

#![expect(clippy::expect_used, clippy::print_stdout, clippy::panic, reason = "a measurement")]

mod burst;
mod raw;
mod types;

use std::path::PathBuf;

use teamster_benches::forms::Form;

fn main() {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().expect("floor lines|typed|raw TASK FORM CLI RUNS");
    let (kind, task, form, cli) = (next(), next(), next(), PathBuf::from(next()));
    let runs: usize = next().parse().expect("a number of runs");
    let form = Form::named(&form).expect("a form");
    let report = match (kind.as_str(), task.as_str()) {
        ("lines", "burst") => burst::measure(form, &cli, burst::Reader::Lines),
        ("typed", "burst") => burst::measure(form, &cli, burst::Reader::Typed),
        ("raw", "latency") => raw::latency(form, &cli, runs),
        ("raw", "start" | "steps") => raw::start(form, &cli),
        ("raw", "stop") => raw::stop(form, &cli),
        (kind, task) => panic!("the floor {kind} does not measure {task}"),
    };
    println!("{}", report.line());
}
