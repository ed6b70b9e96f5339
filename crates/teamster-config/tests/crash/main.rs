//! What is left when a process is killed: nothing, after the next recovery.
//!
//! This program plays two parts: the tests, and (as a child of its own) a process that needs an entry in a file and is
//! killed, after a certain step or at any moment. `steps` kills after every single step there is; `moments` kills 200 times
//! for each format at random moments, with a second process that needs an entry in the same file.

#![expect(clippy::panic, clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

mod child;
mod moments;
mod place;
mod steps;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, part, rest @ ..] = arguments.as_slice()
        && part == child::PART
    {
        child::main(rest);
        return ExitCode::SUCCESS;
    }
    let trials: Vec<Trial> = [steps::trials(), moments::trials()].into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
