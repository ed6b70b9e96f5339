//! The lookup in a failure table.

use teamster_types::event::{ErrorCode, Failure};
use teamster_types::text::UntrustedText;

use super::table::{FailureRow, Matcher};

/// What a CLI reported about a failure.
#[derive(Clone, Debug, Default)]
pub(in crate::agent) struct FailureInput<'a> {
    /// Structured fields, by their names in the table.
    pub(in crate::agent) fields: Vec<(&'static str, &'a str)>,
    /// The HTTP status of the vendor's last response.
    pub(in crate::agent) status: Option<u16>,
    /// The exit code.
    pub(in crate::agent) exit_code: Option<i32>,
    /// The CLI's message about the failure.
    pub(in crate::agent) message: Option<&'a str>,
    /// The lines on standard error, without colors, of a CLI that exited without a result.
    pub(in crate::agent) stderr: Vec<&'a str>,
}

impl<'a> FailureInput<'a> {
    /// Adds a field, if it has a value.
    pub(in crate::agent) fn field(mut self, name: &'static str, value: Option<&'a str>) -> Self {
        self.fields.extend(value.map(|value| (name, value)));
        self
    }

    /// Returns the first row of the table whose matchers all match.
    pub(in crate::agent) fn row(&self, table: &'static [FailureRow]) -> Option<&'static FailureRow> {
        table.iter().find(|row| row.matchers.iter().all(|matcher| self.matches(matcher)))
    }

    /// Classifies a failure.
    ///
    /// The message is the line of standard error that the row matches, otherwise `text`. A failure that no row matches is a
    /// permanent failure of the provider.
    pub(in crate::agent) fn classify(
        &self,
        table: &'static [FailureRow],
        text: impl Into<UntrustedText>,
    ) -> Classification {
        match self.row(table) {
            Some(row) => Classification::by(row, self.line_of(row).unwrap_or_else(|| text.into().into_string())),
            None => {
                Classification { failure: Failure::new(ErrorCode::Provider, text).with_retryable(false), row: None }
            }
        }
    }

    /// Classifies the exit of a CLI that gave no result; `None` if no row matches.
    pub(in crate::agent) fn classify_exit(&self, table: &'static [FailureRow]) -> Option<Classification> {
        let row = self.row(table)?;
        Some(Classification::by(row, self.line_of(row).or_else(|| Some((*self.stderr.first()?).to_owned()))?))
    }

    fn matches(&self, matcher: &Matcher) -> bool {
        match matcher {
            Matcher::Field(name, value) => {
                self.fields.iter().any(|(known, text)| known == name && matches(value, text))
            }
            Matcher::Status(from, to) => self.status.is_some_and(|status| (*from..=*to).contains(&status)),
            Matcher::ExitCode(code) => self.exit_code == Some(*code),
            Matcher::Message(pattern) => self.message.is_some_and(|message| matches(pattern, message)),
            Matcher::Stderr(pattern) => self.stderr.iter().any(|line| matches(pattern, line)),
        }
    }

    /// Returns the line of standard error that a row matches. After a line that ends in a colon, the next line is appended.
    fn line_of(&self, row: &FailureRow) -> Option<String> {
        let pattern = row.matchers.iter().find_map(|matcher| match matcher {
            Matcher::Stderr(pattern) => Some(*pattern),
            _ => None,
        })?;
        let at = self.stderr.iter().position(|line| matches(pattern, line))?;
        let mut lines = self.stderr.iter().skip(at);
        let line = lines.next()?;
        let more = lines.next().filter(|more| line.ends_with(':') && !more.starts_with('-'));
        let line = ["Error: ", "error: "].iter().find_map(|prefix| line.strip_prefix(prefix)).unwrap_or(line);
        Some(more.map_or_else(|| line.to_owned(), |more| format!("{line} {more}")))
    }
}

/// A failure, and the row that matched it, if one did.
#[derive(Clone, Debug)]
pub(in crate::agent) struct Classification {
    pub(in crate::agent) failure: Failure,
    pub(in crate::agent) row: Option<&'static FailureRow>,
}

impl Classification {
    fn by(row: &'static FailureRow, message: String) -> Self {
        let message = match row.hint {
            Some(hint) => format!("{message} ({hint})"),
            None => message,
        };
        let failure = Failure::new(row.code.clone(), message).with_retryable(row.retryable);
        Self { failure, row: Some(row) }
    }
}

impl From<Failure> for Classification {
    /// Returns the classification of a failure that no row matched.
    fn from(failure: Failure) -> Self {
        Self { failure, row: None }
    }
}

/// Returns the lines that are not empty, trimmed and without terminal colors. Some CLIs print colors despite `NO_COLOR`.
pub(in crate::agent) fn plain_lines(stderr: &str) -> Vec<String> {
    let plain = |line: &str| {
        let mut parts = line.split("\u{1b}[");
        let first = parts.next().unwrap_or_default().to_owned();
        let rest = parts.filter_map(|part| part.split_once('m').map(|(_, rest)| rest));
        rest.fold(first, |text, part| text + part).trim().to_owned()
    };
    stderr.lines().map(plain).filter(|line| !line.is_empty()).collect()
}

/// Whether a text matches a pattern, in which `…` matches anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('…');
    let Some(mut rest) = pieces.next().and_then(|head| text.strip_prefix(head)) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_pattern_matches_the_whole_text() {
        for (pattern, text, expected) in [
            ("Not logged in", "Not logged in", true),
            ("Not logged in", "Not logged in · Please run /login", false),
            ("Not logged in", "Error: Not logged in", false),
            ("Not logged in…", "Not logged in · Please run /login", true),
            ("Not logged in…", "Error: Not logged in", false),
            ("…is not valid JSON", "a file is not valid JSON", true),
            ("…is not valid JSON", "is not valid JSON at all", false),
            ("a…b…c", "a1b2c", true),
            ("a…b…c", "a1c2b", false),
            ("a…a", "a", false),
            ("…", "", true),
            ("a……b", "ab", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern:?} {text:?}");
        }
    }
}
