//! A process is killed during a merge, and the next recovery restores the file.
//!
//! This program has two roles: the tests, and a child process that merges an entry and is killed. `steps` kills it after each
//! step. `moments` kills it at 200 random moments for each format, beside a second process that merges into the same file.

#![expect(clippy::panic, clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

mod child;
mod home;
mod moments;
mod steps;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, role, rest @ ..] = arguments.as_slice()
        && role == child::ROLE
    {
        child::main(rest);
        return ExitCode::SUCCESS;
    }
    let trials: Vec<Trial> = [steps::trials(), moments::trials()].into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
