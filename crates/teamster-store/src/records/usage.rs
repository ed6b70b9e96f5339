//! Usage, budgets, retention and figures for the operator.

use crate::ids::{ConversationId, Day, Timestamp};

/// Tokens and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar.
    pub cost_micros: u64,
}

impl Usage {
    /// Returns the sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
        }
    }
}

/// The usage of an attempt, and its day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEntry {
    /// The day.
    pub day: Day,
    /// The agent.
    pub agent: String,
    /// Tokens and cost.
    pub usage: Usage,
}

/// Which usage is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// The first day.
    pub from: Day,
    /// The last day.
    pub to: Day,
    /// Only this conversation.
    pub conversation: Option<ConversationId>,
}

/// The usage of one day, agent, conversation and author. It remains when the conversation is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The day.
    pub day: Day,
    /// The agent.
    pub agent: String,
    /// The conversation.
    pub conversation: ConversationId,
    /// Who wrote the messages.
    pub author: String,
    /// Tokens and cost.
    pub usage: Usage,
}

/// A daily budget, and what a turn reserves of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetLimit {
    /// Names the budget, for example `author:alice`.
    pub scope: String,
    /// The limit of a day, in millionths of a US dollar.
    pub limit_micros: u64,
    /// What the turn reserves until it ends. At the end its real cost is added to the day.
    pub reserve_micros: u64,
}

/// The outcome of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetDecision {
    /// All budgets have room, and all reservations are made.
    Reserved,
    /// This budget has no room. No reservation is made.
    Exceeded {
        /// The budget.
        scope: String,
        /// Its figures, without this turn.
        status: BudgetStatus,
    },
}

/// The figures of a budget on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetStatus {
    /// What turns have cost.
    pub spent_micros: u64,
    /// What running turns have reserved.
    pub reserved_micros: u64,
}

/// The channel whose conversations are deleted when they have no events and turns left. The chats of other channels
/// keep their settings.
pub(crate) const ABANDONED_CHANNEL: &str = "http";

/// What retention deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Deletes events of ended turns that are older.
    pub events_before: Option<Timestamp>,
    /// Keeps at most this number of events for each conversation. Events of turns that have not ended remain.
    pub max_events: Option<u64>,
    /// Deletes turns with their messages, and deliveries, that ended earlier. Channel ids and idempotency keys remain. A
    /// conversation of the channel `http` that was created earlier is deleted as well when its last event and turn are.
    pub ended_before: Option<Timestamp>,
    /// The largest number of rows of each kind in one call.
    pub batch: u32,
}

/// What retention has deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Events.
    pub events: u64,
    /// Turns.
    pub turns: u64,
    /// Deliveries.
    pub deliveries: u64,
    /// Conversations.
    pub conversations: u64,
    /// Call again: a batch was full.
    pub more: bool,
}

/// Figures for the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Conversations.
    pub conversations: u64,
    /// Turns that wait.
    pub queued_turns: u64,
    /// Turns that run.
    pub running_turns: u64,
    /// Turns whose lease has expired.
    pub expired_leases: u64,
    /// Open permission requests.
    pub open_permissions: u64,
    /// Deliveries that have not ended.
    pub pending_deliveries: u64,
    /// Deliveries that were given up, or whose outcome is unknown.
    pub failed_deliveries: u64,
    /// The time since which the oldest turn that is ready to run has waited.
    pub waiting_since: Option<Timestamp>,
    /// The size of the store in bytes, with its write-ahead log. 0 if it is in memory.
    pub bytes: u64,
}
