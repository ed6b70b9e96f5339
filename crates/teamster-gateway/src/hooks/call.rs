//! One call of a hook, and its answer.

use std::sync::Arc;

use serde::Deserialize;
use teamster_process::Supervisor;
use teamster_store::Timestamp;
use tokio::sync::Semaphore;

use super::command;
use super::config::HookConfig;
use super::error::{CallError, FailedCall};
use super::event::HookEvent;
use super::payload::Payload;
use super::webhook::{self, Client};

/// The calls of one hook that run at the same time.
const MAX_CALLS: usize = 8;

/// A hook that can be called.
#[derive(Debug)]
pub(super) struct Hook {
    pub(super) config: HookConfig,
    supervisor: Arc<Supervisor>,
    client: Client,
    calls: Semaphore,
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

impl Hook {
    pub(super) fn new(config: HookConfig, supervisor: Arc<Supervisor>, client: Client) -> Arc<Self> {
        Arc::new(Self { config, supervisor, client, calls: Semaphore::new(MAX_CALLS) })
    }

    /// Calls the hook. Its processes have ended when this returns, and soon after this is dropped.
    pub(super) async fn call(&self, event: &HookEvent, now: Timestamp) -> Result<Answer, FailedCall> {
        let limit = self.config.timeout;
        let deadline = tokio::time::Instant::now() + limit;
        // The time limit includes this wait, so that calls of a hanging hook do not accumulate.
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
