//! How many tests ran, read from the closing lines of cargo-nextest, `cargo test` and vitest.
//!
//! A run of all checks uses a test runner several times; the sum is its last line.

use std::fmt;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    passed: u64,
    failed: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Counts the line when it is a closing line; any other line changes nothing.
    pub(crate) fn read_line(&mut self, line: &str) {
        let line = &without_colors(line);
        let counted = if line.starts_with("test result: ") {
            // test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
            number_before(line, " passed").map(|passed| (passed, number_before(line, " failed").unwrap_or(0)))
        } else if line.trim_start().starts_with("Summary [") {
            // Summary [   0.523s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped
            let run = number_before(line, " tests run:").or_else(|| number_before(line, " test run:"));
            run.map(|run| {
                let passed = number_before(line, " passed").unwrap_or(0);
                (passed, run.saturating_sub(passed))
            })
        } else if line.trim_start().starts_with("Tests  ") {
            // Tests  2 failed | 48 passed (50)
            let passed = number_before(line, " passed").unwrap_or(0);
            number_before(line, ")").map(|all| (passed, all.saturating_sub(passed)))
        } else {
            None
        };
        if let Some((passed, failed)) = counted {
            self.add(Self { passed, failed });
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)
    }
}

fn number_before(line: &str, word: &str) -> Option<u64> {
    let (before, _) = line.split_once(word)?;
    before.rsplit(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

/// Leaves out the color sequences (`ESC [ ... m`).
fn without_colors(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or(part, |(_, after)| after));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::Totals;

    fn counted(lines: &[&str]) -> String {
        let mut totals = Totals::default();
        for line in lines {
            totals.read_line(line);
        }
        totals.to_string()
    }

    #[test]
    fn adds_up_the_closing_lines_of_all_runners() {
        assert_eq!(
            counted(&[
                "     Summary [   0.523s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped\n",
                "     Summary [   0.004s] 1 test run: 1 passed, 0 skipped\n",
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
                " Test Files  1 failed | 5 passed (6)\n",
                "      Tests  2 failed | 48 passed (50)\n",
                "      Tests  10 passed (10)\n",
            ]),
            "72 passed, 4 failed"
        );
    }

    #[test]
    fn reads_colored_lines() {
        assert_eq!(
            counted(&[
                "\u{1b}[32;1m     Summary\u{1b}[0m [   0.004s] \u{1b}[1m2\u{1b}[0m tests run: \u{1b}[1m2\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m\n"
            ]),
            "2 passed, 0 failed"
        );
    }

    #[test]
    fn ignores_what_a_test_prints() {
        let lines = [
            "12 passed, 3 failed\n",
            "        PASS [   0.004s] a::b\n",
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        ];
        assert_eq!(counted(&lines), "0 passed, 0 failed");
    }
}
