//! What an agent's failures mean, as data: a table an agent, and the one function that reads it.
//!
//! The first row whose signs are all there gives the code. The rows of a table are in the order in which their signs can be
//! trusted: structured fields and the vendor's status, then the exit code, then words. Only what the CLI itself says of a
//! failure is [`FailureInput`]: what the model answered and what tools gave is none, whatever stands in it. And words are
//! compared from their beginning, so that a message that quotes others is not taken for what it quotes.
//!
//! Each row names the recorded runs that show it (`tests/captures`); tests hold the tables to that, and make
//! `docs/errors.md` of them.

use crate::protocol::Outcome;
use teamster_types::event::{ErrorCode, Failure};
use teamster_types::text::UntrustedText;

/// A row: what it means when all of its signs are there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailureRow {
    /// All of them must be there.
    pub signs: &'static [Matcher],
    /// What it means.
    pub code: ErrorCode,
    /// Whether the same request may well work in a moment.
    pub retryable: bool,
    /// What to add to the agent's own words.
    pub hint: Option<&'static str>,
    /// Recorded runs that end so.
    pub seen: &'static [&'static str],
}

/// One thing that an agent tells of a failure. In texts `…` stands for anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Matcher {
    /// A field of what the agent wrote, and its value.
    Field(&'static str, &'static str),
    /// The HTTP status of the vendor's answer, from and to.
    Status(u16, u16),
    /// How the CLI exited.
    ExitCode(i32),
    /// The agent's own words about the failure.
    Message(&'static str),
    /// A line on standard error of a CLI that exited without a result.
    Stderr(&'static str),
}

/// Where a sign stands; the better one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// Fields with a meaning of their own, and the vendor's status.
    Structured,
    /// The exit code.
    ExitCode,
    /// Words.
    Text,
}

impl FailureRow {
    /// The best of its signs' sources.
    pub fn source(&self) -> Source {
        self.signs.iter().map(Matcher::source).min().unwrap_or(Source::Text)
    }

    /// Adds a hint.
    pub(super) const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

impl Matcher {
    /// Where it stands.
    pub fn source(&self) -> Source {
        match self {
            Self::Field(..) | Self::Status(..) => Source::Structured,
            Self::ExitCode(_) => Source::ExitCode,
            Self::Message(_) | Self::Stderr(_) => Source::Text,
        }
    }

    fn is_in(&self, evidence: &FailureInput<'_>) -> bool {
        match self {
            Self::Field(name, value) => {
                evidence.fields.iter().any(|(known, text)| known == name && matches(value, text))
            }
            Self::Status(from, to) => evidence.status.is_some_and(|status| (*from..=*to).contains(&status)),
            Self::ExitCode(code) => evidence.exit_code == Some(*code),
            Self::Message(pattern) => evidence.message.is_some_and(|message| matches(pattern, message)),
            Self::Stderr(pattern) => evidence.stderr.iter().any(|line| matches(pattern, line)),
        }
    }
}

/// A failure that lasts: the same request fails again.
pub(super) const fn lasting(signs: &'static [Matcher], code: ErrorCode, seen: &'static [&'static str]) -> FailureRow {
    FailureRow { signs, code, retryable: false, hint: None, seen }
}

/// A failure that passes: the same request may well work in a moment.
pub(super) const fn passing(signs: &'static [Matcher], code: ErrorCode, seen: &'static [&'static str]) -> FailureRow {
    FailureRow { signs, code, retryable: true, hint: None, seen }
}

/// What a CLI says of a failure.
#[derive(Clone, Debug, Default)]
pub(super) struct FailureInput<'a> {
    /// Structured fields by their names in the table.
    pub(super) fields: Vec<(&'static str, &'a str)>,
    /// The HTTP status of the vendor's last answer.
    pub(super) status: Option<u16>,
    /// The exit code.
    pub(super) exit_code: Option<i32>,
    /// The CLI's words about the failure.
    pub(super) message: Option<&'a str>,
    /// The lines on standard error, without colours, of a CLI that exited without a result.
    pub(super) stderr: Vec<&'a str>,
}

impl<'a> FailureInput<'a> {
    /// Adds a field that may not be there.
    pub(super) fn field(mut self, name: &'static str, value: Option<&'a str>) -> Self {
        self.fields.extend(value.map(|value| (name, value)));
        self
    }

    /// The first row of the table that it has all signs of.
    pub(super) fn row(&self, table: &'static [FailureRow]) -> Option<&'static FailureRow> {
        table.iter().find(|row| row.signs.iter().all(|sign| sign.is_in(self)))
    }

    /// What it means, by the table; the message is the line that the row is known by, else what stands in `words`. What no
    /// row knows is a failure of the provider that nobody promises to pass.
    pub(super) fn classify(&self, table: &'static [FailureRow], words: impl Into<UntrustedText>) -> Classification {
        match self.row(table) {
            Some(row) => Classification::by(row, self.line_of(row).unwrap_or_else(|| words.into().into_string())),
            None => Classification {
                failure: Failure { retryable: Some(false), ..Failure::new(ErrorCode::Provider, words) },
                row: None,
            },
        }
    }

    /// The same for a CLI that exited without a result: what no row knows is left to the exit itself.
    pub(super) fn classify_exit(&self, table: &'static [FailureRow]) -> Option<Classification> {
        let row = self.row(table)?;
        Some(Classification::by(row, self.line_of(row).or_else(|| Some((*self.stderr.first()?).to_owned()))?))
    }

    /// The line on standard error by which a row is known. One that ends in a colon says what it is on the next one.
    fn line_of(&self, row: &FailureRow) -> Option<String> {
        let pattern = row.signs.iter().find_map(|sign| match sign {
            Matcher::Stderr(pattern) => Some(*pattern),
            _ => None,
        })?;
        let at = self.stderr.iter().position(|line| matches(pattern, line))?;
        let mut lines = self.stderr.iter().skip(at);
        let line = lines.next()?;
        let more = lines.next().filter(|more| line.ends_with(':') && !more.starts_with('-'));
        let line = ["Error: ", "error: "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
        Some(more.map_or_else(|| line.to_owned(), |more| format!("{line} {more}")))
    }
}

/// A failure, and the row that it was told by, if one was.
#[derive(Clone, Debug)]
pub(super) struct Classification {
    pub(super) failure: Failure,
    pub(super) row: Option<&'static FailureRow>,
}

impl Classification {
    fn by(row: &'static FailureRow, message: String) -> Self {
        let message = match row.hint {
            Some(hint) => format!("{message} ({hint})"),
            None => message,
        };
        let failure = Failure { retryable: Some(row.retryable), ..Failure::new(row.code.clone(), message) };
        Self { failure, row: Some(row) }
    }
}

impl Classification {
    /// Makes it the outcome's.
    pub(super) fn decide(self, outcome: &mut Outcome) {
        outcome.failure = Some(self.failure);
        outcome.classified_by = self.row;
    }
}

impl From<Failure> for Classification {
    /// A failure that no row tells.
    fn from(failure: Failure) -> Self {
        Self { failure, row: None }
    }
}

impl From<Classification> for Outcome {
    fn from(judgement: Classification) -> Self {
        Self { failure: Some(judgement.failure), classified_by: judgement.row, ..Self::default() }
    }
}

/// Lines that say something, trimmed and without the colours of a terminal, which stand there in spite of `NO_COLOR`.
pub(super) fn plain_lines(stderr: &str) -> Vec<String> {
    let plain = |line: &str| {
        let mut parts = line.split("\u{1b}[");
        let first = parts.next().unwrap_or_default().to_owned();
        let rest = parts.filter_map(|part| part.split_once('m').map(|(_, rest)| rest));
        rest.fold(first, |text, part| text + part).trim().to_owned()
    };
    stderr.lines().map(plain).filter(|line| !line.is_empty()).collect()
}

/// Whether a text is as a pattern says, in which `…` stands for anything.
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
    fn a_pattern_is_compared_from_the_beginning_to_the_end() {
        for (pattern, text, expected) in [
            ("Not logged in", "Not logged in", true),
            ("Not logged in", "Not logged in · Please run /login", false),
            ("Not logged in", "He said: Not logged in", false),
            ("Not logged in…", "Not logged in · Please run /login", true),
            ("Not logged in…", "He said: Not logged in", false),
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
