//! Output of the tests.

/// The maximum number of characters of a printed line.
const MAX_CHARS: usize = 2000;

/// Prints a line, cut to the maximum length.
#[expect(clippy::print_stderr, reason = "test runners keep it and show it if the test fails")]
pub(crate) fn print(line: &str) {
    let short: String = line.chars().take(MAX_CHARS).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    eprintln!("{short}{more}");
}
