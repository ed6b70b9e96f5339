//! The rows of a failure table.

use teamster_types::event::ErrorCode;

/// A row of a failure table: the meaning of a failure that all of its matchers match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailureRow {
    /// The conditions. All of them must match.
    pub matchers: &'static [Matcher],
    /// The error code.
    pub code: ErrorCode,
    /// Whether the same request may succeed if it is repeated soon.
    pub retryable: bool,
    /// Advice that is appended to the agent's message.
    pub hint: Option<&'static str>,
    /// The recorded runs that end with this failure.
    pub captures: &'static [&'static str],
}

/// A condition on what an agent reported about a failure. In a text, `…` matches anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Matcher {
    /// A field of the agent's output, and its value.
    Field(&'static str, &'static str),
    /// The HTTP status of the vendor's response: the lowest and the highest that match.
    Status(u16, u16),
    /// The exit code of the CLI.
    ExitCode(i32),
    /// The agent's message about the failure.
    Message(&'static str),
    /// A line on standard error of a CLI that exited without a result.
    Stderr(&'static str),
}

/// Where a matcher finds its information. The more reliable source is the smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// A field with a defined meaning, or the vendor's status.
    Structured,
    /// The exit code.
    ExitCode,
    /// Text.
    Text,
}

impl FailureRow {
    /// Returns the most reliable source of its matchers.
    pub fn source(&self) -> Source {
        self.matchers.iter().map(Matcher::source).min().unwrap_or(Source::Text)
    }

    /// Adds a hint.
    pub(in crate::agent) const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

impl Matcher {
    /// Returns where it finds its information.
    pub fn source(&self) -> Source {
        match self {
            Self::Field(..) | Self::Status(..) => Source::Structured,
            Self::ExitCode(_) => Source::ExitCode,
            Self::Message(_) | Self::Stderr(_) => Source::Text,
        }
    }
}

/// Returns the row of a failure that repeats: the same request fails again.
pub(in crate::agent) const fn lasting(
    matchers: &'static [Matcher],
    code: ErrorCode,
    captures: &'static [&'static str],
) -> FailureRow {
    FailureRow { matchers, code, retryable: false, hint: None, captures }
}

/// Returns the row of a temporary failure: the same request may succeed soon.
pub(in crate::agent) const fn passing(
    matchers: &'static [Matcher],
    code: ErrorCode,
    captures: &'static [&'static str],
) -> FailureRow {
    FailureRow { matchers, code, retryable: true, hint: None, captures }
}
