//! Schedules: messages that the gateway sends to a conversation at a time.

use super::message::{Accepted, NewMessage};
use super::page::Effects;
use crate::ids::{ConversationId, Json, ScheduleId, Timestamp};

/// A schedule to create or replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSchedule {
    /// Its id.
    pub id: ScheduleId,
    /// The conversation.
    pub conversation: ConversationId,
    /// Expression, time zone, text and the rule for missed times. The engine interprets them.
    pub body: Json,
    /// The next time. `None` if there is none.
    pub next_at: Option<Timestamp>,
}

/// A schedule in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its id.
    pub id: ScheduleId,
    /// The conversation.
    pub conversation: ConversationId,
    /// Expression, time zone, text and the rule for missed times.
    pub body: Json,
    /// The next time. `None` if there is none.
    pub next_at: Option<Timestamp>,
    /// The time that was fired or skipped last.
    pub last_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Which schedules are listed. `None` does not filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleFilter {
    /// The conversation.
    pub conversation: Option<ConversationId>,
    /// Only schedules whose next time is at most this one.
    pub due_by: Option<Timestamp>,
}

/// Fires a schedule once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleFiring {
    /// The schedule.
    pub id: ScheduleId,
    /// The time that is fired: the `next_at` that the caller has read.
    pub due_at: Timestamp,
    /// The time after that.
    pub next_at: Option<Timestamp>,
    /// The message. `None` skips this time.
    pub message: Option<NewMessage>,
    /// Events and deliveries, such as a notice of a skipped time.
    pub effects: Effects,
}

/// The outcome of a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FireOutcome {
    /// This call has fired the schedule, with the outcome of its message.
    Fired(Option<Accepted>),
    /// Another caller has fired, changed or deleted the schedule. Nothing has changed.
    Stale,
}
