//! The failures that the output of a run reports: by its result, and by the last `error` event.

use serde::Deserialize;
use time::{Duration, OffsetDateTime};

use super::super::failure::{FAILURES, http_status};
use super::wire::Problem;
use crate::agent::failure::{Classification, FailureInput};
use teamster_types::event::ErrorCode::{ContextWindow, Protocol, Provider};
use teamster_types::event::Failure;

/// The prefix of the message of an API failure.
const API_ERROR: &str = "[API Error: ";

/// A failure that the CLI reported. The exit code, which is known later, may add details.
#[derive(Clone, Debug)]
pub(super) struct ReportedFailure {
    kind: String,
    status: Option<u16>,
    reasons: Vec<String>,
    /// The CLI's message, without the brackets around it.
    message: String,
}

impl ReportedFailure {
    /// Reads the failure of a run from its result and its last `error` event. Some failures are reported only by the event
    /// (`stream_empty`).
    pub(super) fn new(problem: Option<&Problem>, event: Option<&str>) -> Self {
        let text = problem.map(|problem| problem.message.as_str()).filter(|text| !text.is_empty());
        let text = text.or(event).unwrap_or("the agent reported an error");
        let api = api_error(text).unwrap_or_default();
        // The field of a document may also be an exit code.
        let status = api.code.or_else(|| problem?.code.filter(|code| *code >= 400));
        Self {
            kind: problem.map(|problem| problem.kind.clone()).unwrap_or_default(),
            status: status.and_then(|status| u16::try_from(status).ok()),
            reasons: api.details.into_iter().filter_map(|detail| detail.reason).collect(),
            message: api.message.unwrap_or_else(|| without_brackets(text)),
        }
    }

    /// Classifies the failure, with the exit code if it is known.
    pub(super) fn classify(&self, exit: Option<i32>) -> Classification {
        let input = FailureInput {
            fields: self.reasons.iter().map(|reason| ("error.details.reason", reason.as_str())).collect(),
            status: self.status.or_else(|| http_status(exit?)),
            exit_code: exit,
            message: Some(&self.message),
            ..FailureInput::default()
        };
        input.field("error.type", Some(&self.kind)).classify(FAILURES, self.message.as_str())
    }

    /// Returns when the vendor accepts requests again, if the message contains a delay. `at` is the time of the message.
    pub(super) fn resets_at(&self, at: OffsetDateTime) -> Option<OffsetDateTime> {
        // The CLI prints "Suggested retry after 20s." for the vendor's `RetryInfo`.
        let line = self.message.lines().find_map(|line| line.strip_prefix("Suggested retry after "))?;
        let seconds: f64 = line.split_once('s')?.0.parse().ok()?;
        at.checked_add(Duration::checked_seconds_f64(seconds)?)
    }
}

/// Whether the CLI ends the run after this warning, although it then reports a success (`loop_detection`, `hook_blocked_prompt`).
pub(super) fn ends_run(message: &str) -> bool {
    message.starts_with("Loop detected") || message.starts_with("Agent execution blocked: ")
}

/// Returns the failure of a success without an answer. If no model was called, the CLI considered the conversation too long and did
/// not send it (`json_context_overflow`), or a hook of the user stopped it, which the CLI does not report.
pub(super) fn of_missing_answer(called: bool) -> Failure {
    if called {
        return Failure::new(Provider, "the agent ended without an answer");
    }
    let text = "the agent ended without calling the model: the conversation does not fit into its context window, or \
                a hook stopped it";
    Failure::new(ContextWindow, text)
}

/// Returns the failure of an exit without a result and with exit code 0. The CLI was stopped, or it lost the end of its output,
/// because it exits before a full pipe has been read.
pub(super) fn of_missing_result() -> Failure {
    Failure::new(Protocol, "the CLI exited before it returned a result; the end of its output may be lost")
}

/// The JSON in the message of an API failure: `[API Error: {"error": {...}}]`.
#[derive(Debug, Default, Deserialize)]
struct ApiError {
    code: Option<u64>,
    message: Option<String>,
    #[serde(default)]
    details: Vec<ApiDetail>,
}

#[derive(Debug, Deserialize)]
struct ApiDetail {
    reason: Option<String>,
}

fn api_error(text: &str) -> Option<ApiError> {
    #[derive(Deserialize)]
    struct Document {
        error: ApiError,
    }
    // A document contains the JSON without the prefix.
    let json = text.strip_prefix(API_ERROR).unwrap_or(text);
    let json = json.get(json.find('{').filter(|at| *at == 0)?..=json.rfind('}')?)?;
    serde_json::from_str::<Document>(json).ok().map(|document| document.error)
}

/// Returns a message without the brackets that the CLI adds.
fn without_brackets(text: &str) -> String {
    let Some(inside) = text.strip_prefix(API_ERROR) else { return text.to_owned() };
    match inside.split_once("]\n") {
        Some((message, advice)) => format!("{message}\n{advice}"),
        None => inside.strip_suffix(']').unwrap_or(inside).to_owned(),
    }
}
