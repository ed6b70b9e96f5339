//! The list at the end of all checks: what failed, what was not run, and which tests needed another try.

use std::fmt;
use std::time::Duration;

use crate::junit::{TestEnd, TestRecord};

/// The outcome of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CheckEnd {
    Passed,
    /// This machine lacks what it needs.
    Skipped,
    Failed(String),
    /// It makes no sense, because this check has failed.
    NotRun {
        needs: &'static str,
    },
}

/// The outcomes so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    checks: Vec<(&'static str, CheckEnd)>,
    failed_tests: Vec<String>,
    /// The tests that passed after more than one try, with the number of tries.
    later_tests: Vec<(String, usize)>,
}

impl Report {
    pub(super) fn add(&mut self, name: &'static str, end: CheckEnd) {
        self.checks.push((name, end));
    }

    /// Adds the tests of a run of cargo-nextest.
    pub(super) fn add_tests(&mut self, records: Vec<TestRecord>) {
        for TestRecord { name, end } in records {
            match end {
                TestEnd::Passed => {}
                TestEnd::PassedLater { tries } => self.later_tests.push((name, tries)),
                TestEnd::Failed => self.failed_tests.push(name),
            }
        }
    }

    /// Returns whether a check has failed or was not run.
    pub(super) fn has_failed(&self, name: &str) -> bool {
        self.checks.iter().any(|(known, end)| *known == name && end.is_failure())
    }

    /// Returns whether no check has failed.
    pub(super) fn is_success(&self) -> bool {
        !self.checks.iter().any(|(_, end)| end.is_failure())
    }

    /// Returns the list.
    pub(super) fn text(&self, took: Duration) -> String {
        let seconds = took.as_secs();
        let all = self.checks.len();
        let failed: Vec<_> = self.checks.iter().filter(|(_, end)| matches!(end, CheckEnd::Failed(_))).collect();
        let mut lines = vec![match failed.len() {
            0 => format!("All checks passed in {seconds} s."),
            count => format!("{count} of {all} checks failed, in {seconds} s:"),
        }];
        lines.extend(failed.iter().map(|(name, end)| format!("  {name}: {end}")));
        let not_run = self.checks.iter().filter(|(_, end)| matches!(end, CheckEnd::NotRun { .. }));
        lines.extend(not_run.map(|(name, end)| format!("  {name}: {end}")));
        if !self.failed_tests.is_empty() {
            lines.push("Tests that failed:".to_owned());
            lines.extend(self.failed_tests.iter().map(|name| format!("  {name}")));
        }
        if !self.later_tests.is_empty() {
            lines.push("Tests that failed at first, and passed later:".to_owned());
            lines.extend(self.later_tests.iter().map(|(name, tries)| format!("  {name}: try {tries}")));
        }
        lines.join("\n")
    }
}

impl CheckEnd {
    const fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::NotRun { .. })
    }
}

impl fmt::Display for CheckEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => formatter.write_str("passed"),
            Self::Skipped => formatter.write_str("skipped"),
            Self::Failed(error) => formatter.write_str(error),
            Self::NotRun { needs } => write!(formatter, "not run, because the check {needs:?} failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_secs(7);

    fn record(name: &str, end: TestEnd) -> TestRecord {
        TestRecord { name: name.to_owned(), end }
    }

    #[test]
    fn the_list_has_each_failure_and_what_was_not_run_with_the_reason() {
        let mut report = Report::default();
        report.add("format", CheckEnd::Passed);
        report.add("lints", CheckEnd::Failed("`cargo clippy` exited with code 101".to_owned()));
        report.add("tests", CheckEnd::Failed("`cargo nextest` exited with code 100".to_owned()));
        report.add_tests(vec![record("a one", TestEnd::Failed), record("b two", TestEnd::Passed)]);
        report.add("agent CLIs", CheckEnd::Failed("npm".to_owned()));
        report.add("conformance", CheckEnd::NotRun { needs: "agent CLIs" });
        assert!(!report.is_success());
        assert!(report.has_failed("agent CLIs") && report.has_failed("conformance") && !report.has_failed("format"));
        assert_eq!(
            report.text(TOOK),
            "3 of 5 checks failed, in 7 s:\n  lints: `cargo clippy` exited with code 101\n  \
             tests: `cargo nextest` exited with code 100\n  agent CLIs: npm\n  \
             conformance: not run, because the check \"agent CLIs\" failed\nTests that failed:\n  a one"
        );
    }

    #[test]
    fn a_success_lists_the_tests_that_needed_another_try() {
        let mut report = Report::default();
        report.add("size", CheckEnd::Skipped);
        report.add_tests(vec![record("c three", TestEnd::PassedLater { tries: 2 })]);
        report.add("conformance", CheckEnd::Passed);
        assert!(report.is_success());
        assert_eq!(
            report.text(TOOK),
            "All checks passed in 7 s.\nTests that failed at first, and passed later:\n  c three: try 2"
        );
    }
}
