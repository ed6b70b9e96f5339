//! The events of hooks, and the decisions of hooks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_store::ConversationId;

/// The name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookEventKind {
    /// A message is about to be accepted.
    MessageAccepted,
    /// An attempt starts.
    TurnStarted,
    /// The agent has called a tool.
    ToolUsed,
    /// The agent waits for a person.
    PermissionRequested,
    /// A turn has ended.
    TurnFinished,
    /// A delivery was given up.
    DeliveryFailed,
}

/// An event for hooks. A hook gets it as JSON, with `event`, `id` and `at` beside the fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum HookEvent {
    /// A message is about to be accepted.
    MessageAccepted {
        /// Its conversation, if there is one already.
        #[serde(skip_serializing_if = "Option::is_none")]
        conversation_id: Option<String>,
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
    /// A required hook failed: the message can be sent again later.
    Unavailable(String),
}

impl HookEventKind {
    /// Returns the name of the event.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MessageAccepted => "message_accepted",
            Self::TurnStarted => "turn_started",
            Self::ToolUsed => "tool_used",
            Self::PermissionRequested => "permission_requested",
            Self::TurnFinished => "turn_finished",
            Self::DeliveryFailed => "delivery_failed",
        }
    }
}

impl HookEvent {
    /// Returns the kind of the event.
    pub const fn kind(&self) -> HookEventKind {
        match self {
            Self::MessageAccepted { .. } => HookEventKind::MessageAccepted,
            Self::TurnStarted { .. } => HookEventKind::TurnStarted,
            Self::ToolUsed { .. } => HookEventKind::ToolUsed,
            Self::PermissionRequested { .. } => HookEventKind::PermissionRequested,
            Self::TurnFinished { .. } => HookEventKind::TurnFinished,
            Self::DeliveryFailed { .. } => HookEventKind::DeliveryFailed,
        }
    }

    /// Returns the conversation in whose log a failure of the hook is written.
    pub(super) fn conversation(&self) -> Option<ConversationId> {
        let id = match self {
            Self::MessageAccepted { conversation_id, .. } => conversation_id.as_deref()?,
            Self::TurnStarted { conversation_id, .. }
            | Self::ToolUsed { conversation_id, .. }
            | Self::PermissionRequested { conversation_id, .. }
            | Self::TurnFinished { conversation_id, .. } => conversation_id,
            Self::DeliveryFailed { .. } => return None,
        };
        id.parse().ok()
    }
}
