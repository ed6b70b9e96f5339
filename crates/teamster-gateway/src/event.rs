//! The events of a conversation's log: those of a run, and the gateway's own.

use serde::{Deserialize, Serialize};

/// The gateway's own events. Names and fields are part of the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum GatewayEvent {
    /// A message is accepted, and its turn waits.
    TurnQueued {
        /// The message.
        message_id: String,
        /// Who wrote it.
        author: String,
        /// Its text.
        text: String,
        /// The names of its attachments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<String>,
        /// The schedule that has sent it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule_id: Option<String>,
        /// Whether the agent has created this schedule: the text is that of the agent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_agent: bool,
    },
    /// The message of a waiting turn was replaced.
    TurnEdited {
        /// The new text.
        text: String,
    },
    /// An attempt starts.
    TurnStarted {
        /// Its number, starting at 1.
        attempt: u32,
        /// The agent.
        agent: String,
        /// The worker that runs it.
        worker: String,
    },
    /// The agent has taken the message of this turn into the running turn.
    TurnJoined {
        /// The turn that runs.
        into: String,
    },
    /// The attempt has failed, and another one follows.
    TurnRetrying {
        /// The number of the failed attempt.
        attempt: u32,
        /// The time until the next attempt.
        delay_ms: u64,
        /// The code of the failure.
        code: String,
    },
    /// The gateway was stopped while the attempt ran. The next start decides how the turn continues.
    TurnInterrupted {
        /// The number of the attempt.
        attempt: u32,
    },
    /// The conversation waits for the end of a rate limit.
    TurnPaused {
        /// The end of the pause, in RFC 3339.
        until: String,
    },
    /// The pause has ended.
    TurnResumed,
    /// The turn has ended.
    TurnFinished {
        /// `done`, `failed` or `aborted`.
        state: TurnEnd,
        /// The code of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
        /// The text of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A permission request or a question was answered or closed.
    PermissionAnswered {
        /// The request.
        request_id: String,
        /// `allow`, `allow_always`, `deny`, `timed_out`, `worker_lost` or `turn_ended`.
        decision: String,
        /// Who answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The message for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The agent's session lacks a part of the conversation: the earlier session was lost, or the agent is new and the
    /// history is too long.
    SessionReset {
        /// Why, and which part of the history the agent has now.
        reason: String,
    },
    /// A person has restarted the conversation: the agent gets a new session without the earlier history.
    ConversationRestarted {
        /// Who.
        by: String,
    },
    /// A delivery was given up, or its outcome is unknown.
    DeliveryFailed {
        /// The delivery.
        delivery_id: String,
        /// Why.
        reason: String,
    },
    /// A schedule was skipped.
    ScheduleSkipped {
        /// The schedule.
        schedule_id: String,
        /// The time that was skipped, in RFC 3339.
        at: String,
        /// Why.
        reason: String,
    },
    /// The agent has sent a message or a file with a tool of the gateway.
    MessageSent {
        /// The channel.
        channel: String,
        /// The chat, which may be another one than that of the conversation.
        chat: String,
        /// The thread of the chat.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        thread: String,
        /// The text, or the caption of the file.
        text: String,
        /// The file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<crate::attachments::StoredAttachment>,
    },
    /// A hook has failed.
    HookFailed {
        /// The hook.
        hook: String,
        /// Why, without secrets.
        reason: String,
    },
}

/// How a turn has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// With an answer.
    Done,
    /// With an error.
    Failed,
    /// By an abort.
    Aborted,
}

impl GatewayEvent {
    /// Returns the value of the field `type`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::TurnQueued { .. } => "turn_queued",
            Self::TurnEdited { .. } => "turn_edited",
            Self::TurnStarted { .. } => "turn_started",
            Self::TurnJoined { .. } => "turn_joined",
            Self::TurnRetrying { .. } => "turn_retrying",
            Self::TurnInterrupted { .. } => "turn_interrupted",
            Self::TurnPaused { .. } => "turn_paused",
            Self::TurnResumed => "turn_resumed",
            Self::TurnFinished { .. } => "turn_finished",
            Self::PermissionAnswered { .. } => "permission_answered",
            Self::SessionReset { .. } => "session_reset",
            Self::ConversationRestarted { .. } => "conversation_restarted",
            Self::DeliveryFailed { .. } => "delivery_failed",
            Self::ScheduleSkipped { .. } => "schedule_skipped",
            Self::MessageSent { .. } => "message_sent",
            Self::HookFailed { .. } => "hook_failed",
        }
    }
}

/// Returns an event of a log as one JSON object: `seq`, `turnId` and `at` beside its own fields.
///
/// The body of a stored event is an object that starts with its `type`; it is not parsed again.
pub fn render(event: &teamster_store::Event) -> String {
    use std::fmt::Write as _;

    let body = event.body.as_str();
    let rest = body.strip_prefix('{').unwrap_or("}");
    let mut text = String::with_capacity(body.len() + 128);
    // Writing to a text cannot fail.
    _ = write!(text, "{{\"seq\":{}", event.seq);
    if let Some(turn) = event.turn {
        _ = write!(text, ",\"turnId\":\"{turn}\"");
    }
    _ = write!(text, ",\"at\":\"{}\"", rfc3339(event.at));
    if rest.trim_start() != "}" {
        text.push(',');
    }
    text.push_str(rest);
    text
}

/// Formats a time in RFC 3339, in UTC, with milliseconds.
pub fn rfc3339(at: teamster_store::Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}
