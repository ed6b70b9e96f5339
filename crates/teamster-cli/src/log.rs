//! Diagnostic logs of this command and the library on standard error. `--log` or `RUST_LOG` selects the lines.
//!
//! Invariant: a log line contains no control sequences: control characters, and characters that change the direction of
//! text, are escaped.

use std::io::{self, Write};

use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts the log with these directives, such as `teamster=debug`, or with those of `RUST_LOG`. Without directives
/// nothing is logged.
///
/// # Errors
/// Returns a message if the directives cannot be parsed.
pub(crate) fn start(directives: Option<&str>) -> Result<(), String> {
    let variable = std::env::var("RUST_LOG").ok();
    let Some(text) = directives.or(variable.as_deref()).filter(|text| !text.trim().is_empty()) else { return Ok(()) };
    let targets: Targets =
        text.parse().map_err(|error: ParseError| format!("cannot parse the log filter {text:?}: {error}"))?;
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| Escaped(io::stderr()));
    tracing_subscriber::registry()
        .with(lines)
        .with(targets)
        .try_init()
        .map_err(|error| format!("cannot start the log: {error}"))
}

/// A writer that escapes invisible characters, except line ends and spaces.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A write error is ignored: a closed standard error must not cause a failure.
        _ = self.0.write_all(escaped(&String::from_utf8_lossy(bytes)).as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_hidden =
            matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if letter != '\n' && (letter.is_control() || is_hidden) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_characters_are_escaped_in_log_lines() {
        let text = "a\x1b]52;c;eA==\x07 \u{9b}2J \u{202e}b\u{200b}c\td\n";
        assert_eq!(escaped(text), "a\\u{1b}]52;c;eA==\\u{7} \\u{9b}2J \\u{202e}b\\u{200b}c\\u{9}d\n");
    }
}
