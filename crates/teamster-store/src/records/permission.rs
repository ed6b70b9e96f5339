//! Permission requests.

use super::page::Effects;
use crate::ids::{ConversationId, Epoch, Json, PermissionId, Timestamp, TurnId};

/// A permission request of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPermission {
    /// Its id.
    pub id: PermissionId,
    /// The request of the agent, and who may answer.
    pub body: Json,
    /// An answer at this time or later has no effect.
    pub deadline: Timestamp,
}

/// A permission request in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// Its id.
    pub id: PermissionId,
    /// The conversation.
    pub conversation: ConversationId,
    /// The turn that waits for it.
    pub turn: TurnId,
    /// The claim in which it was made.
    pub epoch: Epoch,
    /// The request of the agent, and who may answer.
    pub body: Json,
    /// When it was made.
    pub requested_at: Timestamp,
    /// An answer at this time or later has no effect.
    pub deadline: Timestamp,
    /// How it was closed. `None` while it is open.
    pub closing: Option<Closing>,
}

/// How a permission request was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The outcome.
    pub outcome: PermissionOutcome,
    /// Who answered.
    pub by: Option<String>,
    /// A message for the agent.
    pub message: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// The outcome of a permission request. Each outcome without a person is distinct from a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PermissionOutcome {
    /// A person allowed it once.
    Allowed,
    /// A person allowed it and later requests of this kind.
    AllowedAlways,
    /// A person denied it.
    Denied,
    /// Its time limit passed.
    TimedOut,
    /// Its worker died.
    WorkerLost,
    /// Its turn ended.
    TurnEnded,
}

/// A person's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allow it once.
    Allow,
    /// Allow it and later requests of this kind.
    AllowAlways,
    /// Deny it.
    Deny,
}

impl Decision {
    /// Returns the outcome of a request with this answer.
    pub const fn outcome(self) -> PermissionOutcome {
        match self {
            Self::Allow => PermissionOutcome::Allowed,
            Self::AllowAlways => PermissionOutcome::AllowedAlways,
            Self::Deny => PermissionOutcome::Denied,
        }
    }
}

/// An answer of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request.
    pub id: PermissionId,
    /// The decision.
    pub decision: Decision,
    /// Who answers.
    pub by: String,
    /// A message for the agent.
    pub message: Option<String>,
    /// The event `permission_answered`, and what the chat shows. They are added only if the answer is applied.
    pub effects: Effects,
}

/// The outcome of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The request was open, and this answer is applied.
    Applied(Permission),
    /// The request was answered or closed before. Nothing has changed.
    Closed(Permission),
    /// The time limit has passed, or the worker of the turn no longer holds it. Nothing has changed.
    Expired(Permission),
}

/// Closes a permission request without a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionClosing {
    /// The request.
    pub id: PermissionId,
    /// Why.
    pub outcome: PermissionOutcome,
    /// The event for the log, and what the chat shows. They are added only if the request was open.
    pub effects: Effects,
}

/// Which permission requests are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermissionFilter {
    /// Only open requests.
    pub open: bool,
    /// Only this conversation.
    pub conversation: Option<ConversationId>,
    /// Only this turn.
    pub turn: Option<TurnId>,
}
