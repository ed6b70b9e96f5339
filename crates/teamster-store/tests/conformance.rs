//! The suite on each implementation: one trial for each scenario.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

mod subjects;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use teamster_store::conformance::{Subject, scenarios};

use subjects::{InMemory, Sqlite, block_on};

fn main() -> ExitCode {
    let subjects: [(&str, Arc<dyn Subject>); 2] = [("memory", Arc::new(InMemory)), ("sqlite", Arc::new(Sqlite))];
    let mut trials = Vec::new();
    for (name, subject) in subjects {
        for scenario in scenarios() {
            let subject = Arc::clone(&subject);
            trials.push(Trial::test(format!("{name}::{}", scenario.name), move || {
                block_on(scenario.run(&*subject));
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
