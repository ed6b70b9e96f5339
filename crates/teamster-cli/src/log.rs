//! Diagnostic logs of this command and the library, on standard error or in a file. `--log` or `RUST_LOG` selects the lines.
//!
//! Invariant: a log line contains no control sequences: control characters, and characters that change the direction of
//! text, are escaped.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::render::LogStream;
use crate::trace_export::TraceExport;
use crate::verbose::LogLines;

/// The directives of a log file, if none are given.
const FILE_DIRECTIVES: &str = "teamster=debug";

/// Where log lines go, and their form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination<'a> {
    /// Lines are appended to this file. `None` is standard error.
    pub(crate) file: Option<&'a Path>,
    /// Each line is a JSON document.
    pub(crate) is_json: bool,
}

/// Starts the log with these directives, such as `teamster=debug`, or with those of `RUST_LOG`. Without directives
/// nothing is logged, unless a file is given. `more` receives everything of the library.
///
/// # Errors
/// Returns a message if the directives cannot be parsed, or the file cannot be opened.
pub(crate) fn start(
    directives: Option<&str>,
    destination: Destination<'_>,
    more: Option<LogLines>,
    export: &TraceExport,
) -> Result<(), String> {
    let Destination { file, is_json } = destination;
    let variable = std::env::var("RUST_LOG").ok();
    let given = directives.or(variable.as_deref()).filter(|text| !text.trim().is_empty());
    let text = given.or(file.map(|_| FILE_DIRECTIVES));
    if text.is_none() && more.is_none() {
        return Ok(());
    }
    let targets: Targets = text
        .unwrap_or("off")
        .parse()
        .map_err(|error: ParseError| format!("cannot parse the log filter {:?}: {error}", text.unwrap_or_default()))?;
    let writer = match file {
        None => BoxMakeWriter::new(move || Escaped { to: LogStream, is_json }),
        Some(path) => {
            let file =
                open(path).map_err(|error| format!("cannot open the log file {}: {error}", path.to_string_lossy()))?;
            BoxMakeWriter::new(Mutex::new(Escaped { to: file, is_json }))
        }
    };
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
    let registry = tracing_subscriber::registry().with(more.with_filter(LevelFilter::DEBUG)).with(export.layer());
    #[cfg(feature = "serve")]
    if is_json {
        let started = registry.with(lines.json().flatten_event(true).with_filter(targets)).try_init();
        return started.map_err(|error| format!("cannot start the log: {error}"));
    }
    // Only a gateway has JSON lines.
    _ = is_json;
    let started = registry.with(lines.with_filter(targets)).try_init();
    started.map_err(|error| format!("cannot start the log: {error}"))
}

/// Opens a log file at its end. Only the user can read a new one. Links are followed, as by `>>` of a shell: the user names the
/// file, which a project cannot do.
///
/// # Errors
/// The path is no regular file, no character device and not standard error, or cannot be opened. A FIFO could block the command.
fn open(path: &Path) -> io::Result<File> {
    if path == Path::new("/dev/stderr") {
        return OpenOptions::new().append(true).open(path);
    }
    // Without the flag, a FIFO without a reader blocks here.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path);
    let not_a_file = || io::Error::other("it is no regular file");
    let file = file
        .map_err(|error| if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) { not_a_file() } else { error })?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_char_device() {
        return Err(not_a_file());
    }
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

/// A writer that escapes invisible characters, except line ends and spaces.
struct Escaped<W> {
    to: W,
    /// The bytes are JSON, in which an escape has four digits.
    is_json: bool,
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A write error is ignored: a closed standard error must not cause a failure.
        _ = self.to.write_all(escaped(&String::from_utf8_lossy(bytes), self.is_json).as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn escaped(text: &str, is_json: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_hidden =
            matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if letter != '\n' && (letter.is_control() || is_hidden) {
            if is_json {
                _ = write!(shown, "\\u{:04x}", u32::from(letter));
                continue;
            }
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
        assert_eq!(escaped(text, false), "a\\u{1b}]52;c;eA==\\u{7} \\u{9b}2J \\u{202e}b\\u{200b}c\\u{9}d\n");
    }

    #[test]
    fn a_json_line_is_still_json_after_the_escapes() {
        let line = serde_json::to_string("a\u{9b}2J \u{202e}b").unwrap();
        let shown = escaped(&line, true);
        assert_eq!(shown, r#""a\u009b2J \u202eb""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "a\u{9b}2J \u{202e}b");
    }
}
