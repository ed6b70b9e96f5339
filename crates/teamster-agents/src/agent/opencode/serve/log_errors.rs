//! The last errors of the server's log. Some causes are only there.

use std::collections::VecDeque;

use super::super::logs;

const MAX_LINES: usize = 16;
const MAX_CHARACTERS: usize = 2000;

/// The last errors of the log, with a bounded number and length.
#[derive(Debug, Default)]
pub(super) struct LogErrors(VecDeque<String>);

impl LogErrors {
    /// Adds a line of the log if it is an error.
    pub(super) fn add(&mut self, line: &str) {
        if logs::value(line, "level") == Some("ERROR") {
            if self.0.len() == MAX_LINES {
                self.0.pop_front();
            }
            self.0.push_back(line.chars().take(MAX_CHARACTERS).collect());
        }
    }

    /// Returns the errors as lines.
    pub(super) fn text(&self) -> String {
        self.0.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}
