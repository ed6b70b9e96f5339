//! One line of the journal: the usage of a finished run or turn.

use std::path::Path;

use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};
use teamster::RunResult;
use teamster::event::{ErrorCode, Usage, UsageScope};
use teamster::request::{Conversation, RunRequest};
use teamster::text::UntrustedText;

use crate::path_text::path_text;

/// The start of each line. It cannot occur inside a JSON string, so it also marks the start of a line that follows a cut
/// one without a line end.
pub(super) const START: &[u8] = br#"{"teamsterUsage":1,"#;

/// The version of the format.
const VERSION: u8 = 1;

/// The maximum bytes of a text from the agent. The rest is cut off.
const MAX_TEXT_BYTES: usize = 512;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    #[serde(rename = "teamsterUsage")]
    version: u8,
    /// When the run ended.
    pub(super) time: Timestamp,
    pub(super) agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The agent's working directory.
    pub(super) directory: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// Whether the session had earlier turns before the command started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) resumed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) usage_scope: Option<UsageScope>,
    /// The cost in US dollars, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
    pub(super) outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<ErrorCode>,
    duration_ms: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome {
    Success,
    Failed,
    Aborted,
}

/// The fields that all entries of a command share.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    agent: String,
    directory: String,
    /// The model that was requested.
    model: Option<String>,
    resumed: bool,
}

impl Subject {
    pub(super) fn new(agent: &str, directory: &Path, request: &RunRequest) -> Self {
        Self {
            agent: agent.to_owned(),
            directory: path_text(directory),
            model: request.model.clone(),
            resumed: request.conversation != Conversation::New,
        }
    }

    /// Changes the model that is requested.
    pub(super) fn set_model(&mut self, model: String) {
        self.model = Some(model);
    }

    /// Changes the agent and the request. The directory stays.
    pub(super) fn start_conversation(&mut self, agent: &str, request: &RunRequest) {
        agent.clone_into(&mut self.agent);
        self.model.clone_from(&request.model);
        self.resumed = request.conversation != Conversation::New;
    }
}

impl Entry {
    /// Creates the entry of a run that has ended now.
    pub(super) fn new(subject: &Subject, result: &RunResult) -> Self {
        let model = result.model.as_ref().map(UntrustedText::as_str).or(subject.model.as_deref());
        let now = Timestamp::now();
        Self {
            version: VERSION,
            time: now.round(Unit::Millisecond).unwrap_or(now),
            agent: subject.agent.clone(),
            model: model.map(start_of),
            directory: subject.directory.clone(),
            session_id: result.session_id.as_ref().map(|id| start_of(id.as_str())),
            resumed: subject.resumed,
            usage: result.usage.clone(),
            usage_scope: result.usage_scope.clone(),
            cost_usd: result.total_cost_usd,
            outcome: match result {
                RunResult { aborted: true, .. } => Outcome::Aborted,
                RunResult { is_error: true, .. } => Outcome::Failed,
                _ => Outcome::Success,
            },
            error_code: result.error_code.clone(),
            duration_ms: result.duration_ms,
        }
    }
}

/// Returns the start of a text of the agent, which may have any length.
fn start_of(text: &str) -> String {
    text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default().to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use insta::assert_snapshot;

    use super::*;

    /// Returns an entry of a run at this time.
    pub(in crate::usage) fn entry(time: &str, agent: &str, result: &RunResult) -> Entry {
        let subject = Subject { agent: agent.to_owned(), directory: "/p".to_owned(), model: None, resumed: false };
        Entry { time: time.parse().unwrap(), ..Entry::new(&subject, result) }
    }

    #[test]
    fn an_entry_has_the_numbers_of_a_run_and_none_of_its_texts() {
        let mut result = RunResult::default();
        result.text = "the answer".into();
        result.stderr = Some("a secret".into());
        result.session_id = Some("s-1".into());
        result.model = Some("m".repeat(2000).into());
        result.usage = Some(Usage::new(1, 2).with_cache(Some(3), None).with_reasoning(Some(1)));
        result.usage_scope = Some(UsageScope::Run);
        result.total_cost_usd = Some(0.25);
        (result.is_error, result.error_code, result.duration_ms) = (true, Some(ErrorCode::Auth), 1234);
        let text = serde_json::to_string(&entry("2026-11-24T07:00:00.5Z", "claude", &result)).unwrap();
        assert!(text.as_bytes().starts_with(START));
        assert_snapshot!(text.replace(&"m".repeat(512), "<512>"), @r#"{"teamsterUsage":1,"time":"2026-11-24T07:00:00.5Z","agent":"claude","model":"<512>","directory":"/p","sessionId":"s-1","usage":{"inputTokens":1,"cacheReadTokens":3,"outputTokens":2,"reasoningTokens":1},"usageScope":"run","costUsd":0.25,"outcome":"failed","errorCode":"AUTH","durationMs":1234}"#);
    }
}
