//! Output of the tests.

use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum number of characters of a printed line.
const MAX_CHARS: usize = 2000;

static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Stops the output of runs, requests and events, for programs with an output of their own.
pub fn silence() {
    IS_SILENT.store(true, Ordering::Relaxed);
}

/// Prints a line, cut to the maximum length.
#[expect(clippy::print_stderr, reason = "test runners keep it and show it if the test fails")]
pub fn print(line: &str) {
    if IS_SILENT.load(Ordering::Relaxed) {
        return;
    }
    let short: String = line.chars().take(MAX_CHARS).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    eprintln!("{short}{more}");
}
