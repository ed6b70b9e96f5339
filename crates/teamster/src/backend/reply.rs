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
///
/// It is exhaustive on purpose: a gateway handles both cases.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code() -> impl Strategy<Value = ErrorCode> {
        proptest::sample::select(ErrorCode::KNOWN.to_vec())
    }

    proptest! {
        #[test]
        fn property_8_a_non_zero_exit_without_a_success_is_an_error_with_at_most_500_characters_of_stderr(
            stderr in "(?s).{0,900}",
            exit_code in 1..256_i32,
        ) {
            let mut result = RunResult::default();
            (result.is_error, result.error_code) = (true, Some(ErrorCode::CliExit));
            (result.exit_code, result.stderr) = (Some(exit_code), Some(stderr.as_str().into()));
            let reply = QueryResult::new(result, Some("the CLI exited".to_owned()));
            prop_assert!(reply.is_error);
            prop_assert!(reply.response_text.chars().count() <= MAX_STDERR_CHARACTERS);
            let stderr = stderr.trim();
            let expected = if stderr.is_empty() { "the CLI exited".to_owned() } else { last_characters(stderr) };
            prop_assert_eq!(&reply.response_text, &expected);
        }

        #[test]
        fn property_9_a_result_is_an_error_or_a_text_for_its_target(
            text in "(?s).{0,40}",
            code in proptest::option::of(code()),
            target in "[a-z]{1,8}",
        ) {
            let mut result = RunResult::default();
            (result.final_text, result.is_error) = (text.as_str().into(), code.is_some());
            result.error_code.clone_from(&code);
            let reply = QueryResult::new(result, code.as_ref().map(|_| text.clone())).into_reply(target.clone());
            let json = serde_json::to_value(&reply).unwrap();
            prop_assert_eq!(&json["target"], &target);
            prop_assert_eq!(json.get("error").is_some(), code.is_some());
            prop_assert_eq!(json.get("text").is_some(), code.is_none());
            prop_assert!(json.get("error").is_none() || json.get("session").is_none());
        }

        #[test]
        fn property_10_a_session_is_stored_only_if_there_is_one_that_can_be_resumed(
            id in proptest::option::of("[a-z0-9-]{1,20}"),
            code in proptest::option::of(code()),
        ) {
            let mut result = RunResult::default();
            (result.session_id, result.is_error) = (id.as_deref().map(Into::into), code.is_some());
            result.error_code.clone_from(&code);
            let is_lost = code == Some(ErrorCode::SessionNotFound);
            let stored = QueryResult::new(result, None);
            let expected = id.filter(|_| !is_lost);
            prop_assert_eq!(stored.session_id.as_ref().map(SessionId::as_str), expected.as_deref());
            let json = serde_json::to_value(stored.into_reply(1)).unwrap();
            prop_assert_eq!(json.get("session").and_then(|id| id.as_str()), expected.as_deref().filter(|_| code.is_none()));
        }
    }
}
