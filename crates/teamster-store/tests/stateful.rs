//! Random operations of several workers, compared with the model. `PROPTEST_CASES` sets the number of cases for a soak.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

mod subjects;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::TestRunner;
use teamster_store::conformance::{Subject, stateful};

use subjects::{InMemory, Sqlite, block_on};

/// The cases of a normal test run.
const CASES: u32 = 100;

fn compare(subject: &dyn Subject) {
    let is_set = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let config = if is_set { default } else { ProptestConfig { cases: CASES, ..default } };
    let run = |operations: Vec<stateful::Operation>| {
        block_on(stateful::run(subject, &operations));
        Ok(())
    };
    TestRunner::new(config).run(&stateful::operations(160), run).unwrap();
}

#[test]
fn sqlite_has_the_results_of_the_model() {
    compare(&Sqlite);
}

#[test]
fn the_model_has_the_same_results_twice() {
    compare(&InMemory);
}
