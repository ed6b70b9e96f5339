//! One call of a hook, and its answer.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use teamster_process::{Exit, Supervisor};
use teamster_store::Timestamp;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::command;
use super::config::{HookConfig, HookConfigError};
use super::event::HookEvent;
use super::webhook::{self, Client};
use crate::event::rfc3339;

/// The calls of one hook that run at the same time.
const MAX_CALLS: usize = 8;

/// The size of an answer, besides a rewritten text.
const ANSWER_BYTES: usize = 64 << 10;

/// The largest growth of a text by its encoding in JSON (`\u0000`).
const JSON_GROWTH: usize = 6;

/// A hook that can be called.
#[derive(Debug)]
pub(super) struct Hook {
    pub(super) config: HookConfig,
    supervisor: Arc<Supervisor>,
    client: Client,
    calls: Semaphore,
}

/// What is sent to a hook.
#[derive(Debug)]
pub(super) struct Payload {
    /// The id of the call.
    pub(super) id: String,
    /// The event, as JSON.
    pub(super) body: Vec<u8>,
    /// When it is sent, in seconds since 1970.
    pub(super) timestamp: i64,
    /// The name of the event.
    pub(super) event: &'static str,
    /// The largest answer.
    pub(super) max_answer: usize,
}

/// The answer of a hook on a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields, default)]
pub(super) struct Answer {
    /// What happens to the message.
    pub(super) decision: Decision,
    /// The text that replaces that of the message.
    pub(super) text: Option<String>,
    /// Why the message is rejected, for its author.
    pub(super) reason: Option<String>,
}

/// What happens to a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Decision {
    #[default]
    Accept,
    Reject,
}

/// Why a call failed. The text contains nothing that the hook has printed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    #[error("did not answer within {}", humantime::format_duration(*.0))]
    TimedOut(Duration),
    #[error("cannot be started: {0}")]
    Start(String),
    #[error("{0}")]
    Exit(Exit),
    #[error("answered with more than {0} bytes")]
    TooLong(usize),
    #[error("answered with invalid JSON: {0}")]
    Answer(String),
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    #[error("answered with the status {0}")]
    Status(u16),
    #[error("is not configured: {0}")]
    Config(#[from] HookConfigError),
}

/// A failed call, with the last output for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedCall {
    pub(super) error: CallError,
    /// The end of what the hook has written to stderr. It may contain secrets.
    pub(super) output: Option<String>,
}

impl From<CallError> for FailedCall {
    fn from(error: CallError) -> Self {
        Self { error, output: None }
    }
}

impl Hook {
    pub(super) fn new(config: HookConfig, supervisor: Arc<Supervisor>, client: Client) -> Arc<Self> {
        Arc::new(Self { config, supervisor, client, calls: Semaphore::new(MAX_CALLS) })
    }

    /// Calls the hook. Its processes have ended when this returns, and soon after this is dropped.
    pub(super) async fn call(&self, event: &HookEvent, now: Timestamp) -> Result<Answer, FailedCall> {
        let limit = self.config.timeout;
        let deadline = tokio::time::Instant::now() + limit;
        // A hook that hangs must not let calls pile up: the wait counts.
        let Ok(permit) = tokio::time::timeout_at(deadline, self.calls.acquire()).await else {
            return Err(CallError::TimedOut(limit).into());
        };
        let payload = Payload::new(event, now)?;
        let output = match &self.config.url {
            None => command::run(&self.config, &self.supervisor, &payload, deadline).await,
            Some(url) => webhook::send(&self.config, &self.client, url, &payload, deadline).await.map_err(Into::into),
        }?;
        drop(permit);
        if matches!(event, HookEvent::MessageAccepted { .. }) { Ok(parse(&output)?) } else { Ok(Answer::default()) }
    }
}

impl Payload {
    fn new(event: &HookEvent, now: Timestamp) -> Result<Self, CallError> {
        let broken = |error: serde_json::Error| CallError::Answer(error.to_string());
        let id = Uuid::now_v7().to_string();
        let mut value = serde_json::to_value(event).map_err(broken)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("id".to_owned(), id.clone().into());
            object.insert("at".to_owned(), rfc3339(now).into());
        }
        let text = match event {
            HookEvent::MessageAccepted { text, .. } => text.len(),
            _ => 0,
        };
        Ok(Self {
            id,
            body: serde_json::to_vec(&value).map_err(broken)?,
            timestamp: now.as_millis().div_euclid(1000),
            event: event.kind().name(),
            max_answer: text.saturating_mul(JSON_GROWTH).saturating_add(ANSWER_BYTES),
        })
    }
}

/// Reads an answer. No output accepts the message.
fn parse(output: &[u8]) -> Result<Answer, CallError> {
    if output.trim_ascii().is_empty() {
        return Ok(Answer::default());
    }
    let answer: Answer = serde_json::from_slice(output).map_err(|error| {
        // The text of an error may quote the output.
        CallError::Answer(format!("{:?} at line {} column {}", error.classify(), error.line(), error.column()))
    })?;
    if answer.text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(CallError::Answer("the text is empty: reject the message instead".to_owned()));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_output_accepts_the_message() {
        for output in [&b""[..], b" \n", b"{}"] {
            assert_eq!(parse(output), Ok(Answer::default()));
        }
    }

    #[test]
    fn an_unknown_field_or_an_empty_text_is_an_error_that_quotes_nothing() {
        for output in ["{\"decison\":\"s3cret\"}", "{\"decision\":\"s3cret\"}", "s3cret", "{\"text\":\"  \"}", "{} {}"]
        {
            let error = parse(output.as_bytes()).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
