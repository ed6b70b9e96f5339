//! The result of a query.

use serde::{Deserialize, Serialize};
use teamster_types::event::{ErrorCode, RunResult, SessionId};

/// How many characters of the CLI's standard error an error may quote.
const MAX_STDERR_CHARACTERS: usize = 500;

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueryResult {
    /// The agent's last message, or the error's text.
    pub response_text: String,
    /// The session to resume in the next query. `None` if there is none, or if the requested session cannot be resumed.
    pub session_id: Option<SessionId>,
    /// Whether the query failed.
    pub is_error: bool,
}

/// A result for its recipient, such as a chat: in JSON `{"error", "target"}`, or `{"text", "session", "target"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Reply<T> {
    /// The query failed.
    Error {
        /// The error's text.
        error: String,
        /// The recipient.
        target: T,
    },
    /// The query succeeded.
    Answer {
        /// The agent's last message.
        text: String,
        /// The session to resume, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// The recipient.
        target: T,
    },
}

impl QueryResult {
    /// Converts the result of a run; `failure` is the message of its `error` event.
    pub(super) fn new(result: RunResult, failure: Option<String>) -> Self {
        let Some(code) = result.error_code else {
            let (response_text, session_id) = (result.final_text.into_string(), result.session_id);
            return Self { response_text, session_id, is_error: result.is_error };
        };
        let stderr = result.stderr.as_deref().map(str::trim).filter(|stderr| !stderr.is_empty());
        let response_text = match (&code, stderr) {
            (ErrorCode::WatchdogTimeout | ErrorCode::DeadlineExceeded, _) => "Query timed out".to_owned(),
            (ErrorCode::Protocol, _) => "Failed to parse CLI output".to_owned(),
            (ErrorCode::CliExit | ErrorCode::CliSignaled, Some(stderr)) => last_characters(stderr),
            _ => failure.unwrap_or_else(|| code.as_str().to_owned()),
        };
        let session_id = result.session_id.filter(|_| code != ErrorCode::SessionNotFound);
        Self { response_text, session_id, is_error: true }
    }

    /// The result of a run whose stream ended without `done`.
    pub(super) fn without_done(failure: Option<String>) -> Self {
        let response_text = failure.unwrap_or_else(|| "the run ended without a result".to_owned());
        Self { response_text, session_id: None, is_error: true }
    }

    /// Addresses the result to a recipient.
    pub fn into_reply<T>(self, target: T) -> Reply<T> {
        let Self { response_text, session_id, is_error } = self;
        if is_error {
            Reply::Error { error: response_text, target }
        } else {
            Reply::Answer { text: response_text, session: session_id, target }
        }
    }
}

/// Returns the end of a text: a CLI writes the reason of a failure last.
fn last_characters(text: &str) -> String {
    let skip = text.chars().count().saturating_sub(MAX_STDERR_CHARACTERS);
    text.chars().skip(skip).collect()
}
