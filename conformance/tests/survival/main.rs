//! The survival suite: each fault, on the fake agent and on each real CLI where it can be caused.
//!
//! Each cell of the table in `docs/survival.md` is a test, `COLUMN::ROW`, which asserts what the table states. The column
//! `fake` needs no CLI and no Node. `UPDATE_DOCS=1 cargo test -p teamster-conformance --test survival table::` writes the
//! table.
//!
//! - `row`, `rows`: the table as data.
//! - `fault`: the description of a fault. `disk`: a full disk.
//! - `cell_env`: the environment of a cell. `prepare`: its request. `cell`: runs a cell. `outcome`: compares the result with the table.
//! - `host`: the program that owns the run, and is killed in some rows. `host_process`: the test's side of it.
//! - `process_scan`: finds processes and files. `load`: the load of the machine.
//! - `table`: the page.
//!
//! This program is the tests, the host, the fake agent (with a script in its environment) and a storm of processes
//! (`storm`).

mod cell;
mod cell_env;
mod disk;
mod fault;
mod host;
mod host_process;
mod load;
mod outcome;
mod prepare;
mod process_scan;
mod row;
mod rows;
mod storm;
mod table;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};
use teamster_testkit::fake::{SCRIPT_ENV, play, read_script};

use row::{Column, Row};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let [_, part, cell] = arguments.as_slice()
        && part == storm::PART
    {
        return or_report(storm::main(Path::new(cell)));
    }
    if let Ok(script) = std::env::var(SCRIPT_ENV) {
        return or_report(read_script(&script).and_then(|script| play(&script)).map_err(Into::into));
    }
    if let [_, part, spec] = arguments.as_slice()
        && part == host::PART
    {
        return or_report(host::main(Path::new(spec)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test("table::is_current", || table::is_current().map_err(|error| failed(&error)))];
    for row in rows::all() {
        let row = Arc::new(row);
        for column in Column::all() {
            if let Some(expected) = row.expected(column) {
                let row: Arc<Row> = Arc::clone(&row);
                let name = format!("{}::{}", column.name(), row.id);
                trials.push(Trial::test(name, move || {
                    cell::play(&row, column, expected).map_err(|error| failed(&error))
                }));
            }
        }
    }
    trials
}

fn failed(error: &anyhow::Error) -> Failed {
    format!("{error:#}").into()
}

#[expect(clippy::print_stderr, reason = "a program of its own, whose diagnostics these are")]
fn or_report(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
