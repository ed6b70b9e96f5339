//! Claims of conversations, and how a worker ends its work.

use std::time::Duration;

use super::conversation::{Conversation, Session};
use super::page::Effects;
use super::permission::{Permission, PermissionClosing};
use super::turn::{EndState, Turn};
use super::usage::UsageEntry;
use crate::ids::{ConversationId, Epoch, HostId, Json, Seq, Timestamp, TurnId, WorkerId};

/// An author with this many running turns waits behind all others: a claim takes its next conversation only if no other author
/// has one.
pub const FAIR_SHARE: u32 = 4;

/// The longest time that a turn waits for its next attempt. If a turn would wait longer, a wrong clock has set its
/// time, and it can be claimed at once. Pauses have no limit.
pub const LONGEST_RETRY_DELAY: Duration = Duration::from_mins(10);

/// A worker's request for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The worker.
    pub worker: WorkerId,
    /// The host of the worker, where it finds session files.
    pub host: HostId,
    /// How long the lease lasts without a renewal.
    pub lease_for: Duration,
    /// The largest number of conversations that this worker holds.
    pub max_running: u32,
    /// The largest number of running conversations in a chat, over all workers.
    pub max_running_per_chat: u32,
    /// How long a conversation waits for the host with its session files.
    pub affinity: Duration,
}

impl ClaimRequest {
    /// Returns the number of conversations that a worker holds at most if the next author has its share already. The last
    /// quarter is for the others, since turns that wait for a person can hold their conversations for long.
    pub(crate) const fn max_of_busy_authors(&self) -> u32 {
        self.max_running - self.max_running / 4
    }
}

/// The exclusive right to run one turn of a conversation. Every write of the worker carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// The conversation.
    pub conversation: ConversationId,
    /// The running turn.
    pub turn: TurnId,
    /// The number of the claim.
    pub epoch: Epoch,
}

/// A claimed conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The lease.
    pub lease: Lease,
    /// When the lease expires. The worker measures `lease_for` from before its call and does not compare this with its
    /// clock.
    pub expires_at: Timestamp,
    /// The conversation.
    pub conversation: Conversation,
    /// The turn to run.
    pub turn: Turn,
    /// The agent's session.
    pub session: Option<Session>,
    /// Another agent has worked in the conversation since the session was used: the session lacks what follows this
    /// event.
    pub missed_since: Option<Seq>,
    /// Whether the turn ran when the lease of its last worker expired.
    pub interrupted: bool,
    /// Permission requests that the last worker has left open. Close them, because their agent process no longer runs.
    pub open_permissions: Vec<Permission>,
    /// Turns whose messages the agent has taken into this turn.
    pub joined: Vec<TurnId>,
}

/// The outcome of a message that was sent into the running turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinedOutcome {
    /// The agent has it. Its turn ends together with the running one.
    Taken,
    /// The agent does not have it. Its turn waits again.
    Waits,
    /// It had an effect and was stopped, so that it must not run again. Its turn has failed with this code.
    Failed(String),
}

/// The outcome of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease is valid until this time.
    Renewed {
        /// When the lease expires.
        expires_at: Timestamp,
        /// A caller has requested the abort of the turn.
        abort_requested: bool,
    },
    /// The lease has expired, or another worker has the conversation. Kill the turn's processes.
    Lost,
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// What happens to the agent's session.
    pub session: SessionChange,
    /// What the attempt has used.
    pub usage: Option<UsageEntry>,
    /// Permission requests to close, with their events. Any other open request of the turn is closed without an event.
    pub closings: Vec<PermissionClosing>,
    /// Events and deliveries, such as `turn_finished` and the answer. They follow the events of `closings`.
    pub effects: Effects,
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// How it ends.
    pub state: EndState,
    /// The result.
    pub result: Option<Json>,
    /// The error code.
    pub error_code: Option<String>,
    /// The end of its last attempt.
    pub attempt: AttemptEnd,
}

/// Puts a running turn back into its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandBack {
    /// Why, and until when.
    pub kind: HandBackKind,
    /// The end of the attempt.
    pub attempt: AttemptEnd,
}

/// Why a turn is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandBackKind {
    /// The attempt has failed. The next one starts at this time or later.
    Retry(Timestamp),
    /// The conversation pauses until this time. A caller can end the pause.
    Pause(Timestamp),
    /// The worker shuts down. The attempt is not counted.
    Shutdown,
}

/// What happens to the session of an agent in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// It stays as it is.
    Keep,
    /// This is the agent's session now.
    Set {
        /// The agent that has run.
        agent: String,
        /// Its session.
        session: Session,
    },
    /// The agent's session cannot be used. The next attempt starts another one.
    Clear {
        /// The agent that has run.
        agent: String,
    },
}
