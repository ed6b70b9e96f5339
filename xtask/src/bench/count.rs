//! `cargo xtask bench count`: the number of instructions of framing, decoding and the whole path on recorded runs.
//!
//! Callgrind counts them, so the figures do not depend on what else the machine does. They depend on the compiler: after an
//! update of Rust, update the baseline.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{self, cargo, root};

/// The work, and the recorded run.
const WORK: &[&str] = &[
    "framing claude/text",
    "decoding claude/text",
    "decoding claude/file_edit",
    "decoding codex/text",
    "decoding gemini/parallel_tools",
    "decoding opencode/anthropic_text",
    "path claude/text",
    "path claude/file_edit",
];

/// The maximum difference from the baseline, as a part of it.
const TOLERANCE: f64 = 0.03;

/// The number of instructions of each work.
type Counts = BTreeMap<String, u64>;

/// Counts, and compares with the baseline, or writes the baseline.
pub(crate) fn run(update: bool) -> Result<()> {
    let counts = count()?;
    if update {
        let text = serde_json::to_string_pretty(&counts)? + "\n";
        return fs::write(baseline(), text).context("cannot write the baseline");
    }
    let text = fs::read_to_string(baseline()).context("cannot read the baseline")?;
    let baseline: Counts = serde_json::from_str(&text).context("cannot read the baseline")?;
    let problems = problems(&counts, &baseline);
    ensure!(
        problems.is_empty(),
        "{}\nIf the change is meant, run `cargo xtask bench count --update`, and say in the commit what it buys.",
        problems.join("\n")
    );
    Ok(())
}

fn baseline() -> PathBuf {
    root().join("benches/instructions.json")
}

fn count() -> Result<Counts> {
    let build = ["build", "--profile", "count", "--package", "teamster-benches", "--example", "count"];
    command::run(cargo(&build))?;
    let program = command::target_directory()?.join("count/examples/count");
    let mut counts = Counts::new();
    for work in WORK {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*measured_*"]);
        let output = valgrind.arg(&program).arg(work).output().context("cannot start valgrind")?;
        let report = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{work} failed:\n{report}");
        ensure!(output.stdout.trim_ascii() != b"0", "{work} emits no event");
        let Some(count) = collected(&report).filter(|count| *count > 0) else {
            bail!("valgrind counted no instructions of {work}:\n{report}");
        };
        println!("{work:<36} {count:>12} instructions");
        counts.insert((*work).to_owned(), count);
    }
    Ok(counts)
}

/// Returns the count in callgrind's report: `==1== Collected : 123`.
fn collected(report: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

fn problems(counts: &Counts, baseline: &Counts) -> Vec<String> {
    let of_count = |(work, count): (&String, &u64)| {
        let Some(before) = baseline.get(work) else { return Some(format!("{work} is not in the baseline")) };
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let change = *count as f64 / *before as f64 - 1.0;
        let percent = change * 100.0;
        (change.abs() > TOLERANCE)
            .then(|| format!("{work}: {count} instructions, {percent:+.1} % of the baseline of {before}"))
    };
    counts.iter().filter_map(of_count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_more_than_three_percent_and_new_work_are_problems() {
        let counts = |count| Counts::from([("a".to_owned(), count)]);
        assert!(problems(&counts(1029), &counts(1000)).is_empty());
        assert!(problems(&counts(971), &counts(1000)).is_empty());
        assert_eq!(problems(&counts(1040), &counts(1000)), ["a: 1040 instructions, +4.0 % of the baseline of 1000"]);
        assert_eq!(problems(&counts(900), &counts(1000)).len(), 1);
        assert_eq!(problems(&counts(1), &Counts::new()), ["a is not in the baseline"]);
    }

    #[test]
    fn the_count_is_read_from_the_report() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 4711\n"), Some(4711));
        assert_eq!(collected("==7== nothing"), None);
    }
}
