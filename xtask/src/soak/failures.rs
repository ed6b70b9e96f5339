//! Which tests failed in the rounds of a soak, how often, and on which cores.

use std::collections::BTreeMap;
use std::fmt;

use crate::junit::{TestEnd, TestRecord};

/// What else the cores do during a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cores {
    Idle,
    /// A thread of xtask keeps each core busy.
    Busy,
}

/// A round of all tests.
#[derive(Debug)]
pub(super) enum Round {
    Run(Vec<TestRecord>),
    /// It could not be run, for this reason.
    NotRun(String),
}

/// The rounds so far.
#[derive(Debug, Default)]
pub(super) struct Failures {
    idle: Rounds,
    busy: Rounds,
    /// The largest number of tests in a round.
    tests: usize,
}

/// The rounds on one kind of cores.
#[derive(Debug, Default)]
struct Rounds {
    count: u32,
    /// How often each test has failed.
    failed: BTreeMap<String, u32>,
    /// Why rounds could not be run.
    not_run: Vec<String>,
}

impl Failures {
    pub(super) fn add(&mut self, cores: Cores, round: Round) {
        let rounds = match cores {
            Cores::Idle => &mut self.idle,
            Cores::Busy => &mut self.busy,
        };
        rounds.count += 1;
        match round {
            Round::Run(records) => {
                self.tests = self.tests.max(records.len());
                for record in records.into_iter().filter(|record| record.end != TestEnd::Passed) {
                    *rounds.failed.entry(record.name).or_default() += 1;
                }
            }
            Round::NotRun(reason) => rounds.not_run.push(reason),
        }
    }

    /// Returns whether each test has passed in each round.
    pub(super) fn is_empty(&self) -> bool {
        [&self.idle, &self.busy].iter().all(|rounds| rounds.failed.is_empty() && rounds.not_run.is_empty())
    }
}

impl Rounds {
    fn failures(&self, test: &str) -> u32 {
        self.failed.get(test).copied().unwrap_or_default()
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
        })
    }
}

impl fmt::Display for Round {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = match self {
            Self::Run(records) => records,
            Self::NotRun(reason) => return write!(formatter, "not run: {reason}"),
        };
        let failed: Vec<_> = records.iter().filter(|record| record.end != TestEnd::Passed).collect();
        write!(formatter, "{} of {} tests failed", failed.len(), records.len())?;
        failed.iter().try_for_each(|record| write!(formatter, "\n  {}", record.name))
    }
}

impl fmt::Display for Failures {
    /// Writes one list: each test that failed, with the number of rounds in which it did.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { idle, busy, tests } = self;
        writeln!(
            formatter,
            "{} rounds on idle cores, {} on busy cores; {tests} tests in each",
            idle.count, busy.count
        )?;
        for (cores, rounds) in [(Cores::Idle, idle), (Cores::Busy, busy)] {
            for reason in &rounds.not_run {
                writeln!(formatter, "a round on {cores} cores was not run: {reason}")?;
            }
        }
        let mut names: Vec<_> = idle.failed.keys().chain(busy.failed.keys()).collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            return formatter.write_str("no test failed");
        }
        write!(formatter, "{} tests failed (idle, busy):", names.len())?;
        names
            .iter()
            .try_for_each(|name| write!(formatter, "\n  {:>3} {:>3}  {name}", idle.failures(name), busy.failures(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cores, Failures, Round};
    use crate::junit::{TestEnd, TestRecord};

    fn round(tests: &[(&str, TestEnd)]) -> Round {
        Round::Run(tests.iter().map(|(name, end)| TestRecord { name: (*name).to_owned(), end: *end }).collect())
    }

    #[test]
    fn the_list_has_each_test_that_failed_how_often_and_on_which_cores() {
        let mut failures = Failures::default();
        failures.add(Cores::Idle, round(&[("a one", TestEnd::Passed), ("b two", TestEnd::Failed)]));
        failures
            .add(Cores::Busy, round(&[("a one", TestEnd::Failed), ("b two", TestEnd::Failed), ("c", TestEnd::Passed)]));
        failures.add(Cores::Idle, round(&[("a one", TestEnd::Passed), ("b two", TestEnd::Passed)]));
        failures.add(Cores::Busy, Round::NotRun("`cargo nextest` exited with code 101".to_owned()));
        assert!(!failures.is_empty());
        assert_eq!(
            failures.to_string(),
            "2 rounds on idle cores, 2 on busy cores; 3 tests in each\n\
             a round on busy cores was not run: `cargo nextest` exited with code 101\n\
             2 tests failed (idle, busy):\n    0   1  a one\n    1   1  b two"
        );
    }

    #[test]
    fn a_test_that_passed_at_a_second_try_counts_as_failed() {
        let mut failures = Failures::default();
        failures.add(Cores::Busy, round(&[("a one", TestEnd::PassedLater { tries: 2 })]));
        assert!(!failures.is_empty());
    }

    #[test]
    fn rounds_without_a_failure_have_an_empty_list() {
        let mut failures = Failures::default();
        failures.add(Cores::Idle, round(&[("a one", TestEnd::Passed)]));
        assert!(failures.is_empty());
        assert_eq!(failures.to_string(), "1 rounds on idle cores, 0 on busy cores; 1 tests in each\nno test failed");
    }

    #[test]
    fn a_round_names_the_tests_that_failed_in_it() {
        let round = round(&[("a one", TestEnd::Passed), ("b two", TestEnd::Failed)]);
        assert_eq!(round.to_string(), "1 of 2 tests failed\n  b two");
    }
}
