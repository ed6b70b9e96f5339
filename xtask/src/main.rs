//! The project's own commands: `cargo xtask COMMAND`.
//!
//! Each command has a file. It prints each program before it runs it, stops at the first failure, and reports the
//! failure in one line. `test`, `ci` and `soak tests` continue after a failure, and end with a list. No crate of the product depends on this one.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "these commands print for a person or a CI log")]

mod bench;
mod command;
mod demo;
mod fuzz;
mod install;
mod install_clis;
mod junit;
mod latency;
mod load;
mod page;
mod python;
mod schemathesis;
mod size;
mod soak;
mod test;
mod tidy;
mod tools;
mod totals;
mod tour;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", about = "The project's own commands")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all checks: format, lints, tests, docs, the real CLIs, dependency policy
    Test {
        /// Run only the format, the lints and the fast tests, without Node
        #[arg(long)]
        quick: bool,
    },
    /// Run the checks of CI, as .ci/run does
    Ci,
    /// Install the agent CLIs pinned in conformance/package.json, and verify that they run
    InstallClis,
    /// Install the Python programs that check the gateway, pinned in conformance/python
    InstallPython,
    /// Install the command with its man pages and completions below a prefix
    Install(install::Args),
    /// Remove what `install` wrote
    Uninstall(install::Args),
    /// Watch a real agent CLI work through `teamster run`, with a scripted model: no account, no key, no network
    Demo(demo::Args),
    /// Run the benchmarks, or compare Teamster with published peers
    Bench(bench::Args),
    /// Measure the time from a prompt to the first text of the real CLIs, with and without warm processes
    Latency(latency::Args),
    /// Start hundreds of runs in one process, and measure the resources of each
    Load(load::Args),
    Page(page::Args),
    PageShots(page::ShotsArgs),
    Fuzz(fuzz::Args),
    Schemathesis(schemathesis::Args),
    Soak(soak::Args),
    /// Build the command, and compare its size and its number of crates with their bounds
    Size,
    Tidy(tidy::Args),
    Tour(tour::Args),
}

fn main() -> ExitCode {
    match run(&Args::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Test { quick } => return test::run(if *quick { test::Scope::Quick } else { test::Scope::Full }),
        Command::Ci => return test::run(test::Scope::Ci),
        Command::InstallClis => {
            tools::Tools::find().require_node()?;
            install_clis::run()?;
        }
        Command::InstallPython => {
            tools::Tools::find().require_python()?;
            python::install_for_tests()?;
        }
        Command::Install(args) => install::run(args)?,
        Command::Uninstall(args) => install::remove(args)?,
        Command::Demo(args) => return demo::run(args),
        Command::Bench(args) => bench::run(args)?,
        Command::Latency(args) => latency::run(args)?,
        Command::Load(args) => load::run(args)?,
        Command::Page(args) => page::run(args)?,
        Command::PageShots(args) => page::shots(args)?,
        Command::Fuzz(args) => fuzz::run(args)?,
        Command::Schemathesis(args) => {
            tools::Tools::find().require_python()?;
            schemathesis::run(args)?;
        }
        Command::Soak(args) => soak::run(args)?,
        Command::Size => size::run()?,
        Command::Tidy(args) => tidy::run(args)?,
        Command::Tour(args) => tour::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
