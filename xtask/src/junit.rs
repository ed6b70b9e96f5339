//! Reads what a run of cargo-nextest has written about each test: `target/nextest/PROFILE/junit.xml`.
//!
//! The file has one element `testcase` for each test. A test that failed contains `failure` or `error`; a test that passed at a
//! later try contains `flakyFailure` or `flakyError`. Text of a test is escaped, so a `<` always starts a tag.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::command::target_directory;

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestEnd {
    Passed,
    /// It passed after this number of tries.
    PassedLater {
        tries: usize,
    },
    Failed,
}

/// A test and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestRecord {
    /// The test program and the test, as cargo-nextest prints them.
    pub(crate) name: String,
    pub(crate) end: TestEnd,
}

/// Returns the file that a profile writes.
pub(crate) fn path(profile: &str) -> Result<PathBuf> {
    Ok(target_directory()?.join("nextest").join(profile).join("junit.xml"))
}

/// Removes the file of an earlier run.
pub(crate) fn forget(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

/// Reads the file. A run that could not start writes none.
pub(crate) fn read(file: &Path) -> Result<Vec<TestRecord>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let records = parse(&text).with_context(|| format!("cannot read {}", file.display()))?;
    ensure!(!records.is_empty(), "{} has no test", file.display());
    Ok(records)
}

/// Returns the tests of a file.
fn parse(text: &str) -> Result<Vec<TestRecord>> {
    ensure!(text.contains("</testsuites>"), "it has no end");
    let mut records: Vec<TestRecord> = Vec::new();
    let mut program = String::new();
    for tag in text.split('<').skip(1) {
        let tag = tag.split_once('>').map_or(tag, |(tag, _)| tag);
        match tag.split_whitespace().next().unwrap_or_default() {
            "testsuite" => program = attribute(tag, "name")?,
            "testcase" => {
                let name = format!("{program} {}", attribute(tag, "name")?);
                records.push(TestRecord { name, end: TestEnd::Passed });
            }
            "failure" | "error" => {
                if let Some(record) = records.last_mut() {
                    record.end = TestEnd::Failed;
                }
            }
            "flakyFailure" | "flakyError" => {
                if let Some(record) = records.last_mut() {
                    record.end = match record.end {
                        TestEnd::PassedLater { tries } => TestEnd::PassedLater { tries: tries + 1 },
                        _ => TestEnd::PassedLater { tries: 2 },
                    };
                }
            }
            _ => {}
        }
    }
    Ok(records)
}

fn attribute(tag: &str, name: &str) -> Result<String> {
    let value = tag.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
    let (value, _) = value.with_context(|| format!("a tag has no {name}: {tag}"))?;
    let plain = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    Ok(plain.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::{TestEnd, TestRecord, parse};

    const FILE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="4" failures="1" errors="0" time="1.0">
    <testsuite name="teamster-cli::chaos" tests="2" disabled="0" errors="0" failures="1">
        <testcase name="a_crash" classname="teamster-cli::chaos" timestamp="2026-01-01T00:00:00Z" time="2.5">
            <failure message="panicked: 1 &lt; 2" type="test failure">text &lt;failure&gt; of the test</failure>
            <rerunFailure type="test failure"></rerunFailure>
            <system-out>a line</system-out>
        </testcase>
        <testcase name="tests::&quot;a&quot; &amp; b" classname="teamster-cli::chaos" time="0.1">
        </testcase>
    </testsuite>
    <testsuite name="teamster-conformance::all" tests="2">
        <testcase name="late" time="0.1"><flakyFailure type="test failure"/><flakyFailure type="x"/></testcase>
        <testcase name="slow" time="0.1"><error type="execution failure"/></testcase>
    </testsuite>
</testsuites>
"#;

    #[test]
    fn each_test_has_its_program_and_its_outcome() {
        let record = |name: &str, end| TestRecord { name: name.to_owned(), end };
        let expected = [
            record("teamster-cli::chaos a_crash", TestEnd::Failed),
            record("teamster-cli::chaos tests::\"a\" & b", TestEnd::Passed),
            record("teamster-conformance::all late", TestEnd::PassedLater { tries: 3 }),
            record("teamster-conformance::all slow", TestEnd::Failed),
        ];
        assert_eq!(parse(FILE).unwrap(), expected);
    }

    #[test]
    fn a_file_that_was_cut_off_is_an_error() {
        assert!(parse(FILE.get(..400).unwrap()).is_err());
        assert!(parse("").is_err());
    }
}
