//! The environment of scenarios: a store, a clock that they move, and ids.

use std::time::Duration;

use uuid::Uuid;

use super::records::{message, new_conversation};
use super::subject::Instance;
use crate::ids::{ConversationId, HostId, Seq, Timestamp, WorkerId};
use crate::records::{
    Accepted, AcceptedTurn, AttemptEnd, Claim, ClaimRequest, Effects, EndState, Event, Finish, NewEvent, NewMessage,
    QueueLimits, SessionChange, Target,
};
use crate::store::Store;

/// Limits that no scenario reaches by accident.
pub(super) const WIDE: QueueLimits = QueueLimits { chat: 1000, total: 1000 };

/// The length of leases.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// A store under test, with a clock and a source of ids.
#[expect(missing_debug_implementations, reason = "a store has no output for people")]
pub struct World {
    instance: Box<dyn Instance>,
    now: Timestamp,
    last_id: u128,
}

impl World {
    pub(super) fn new(instance: Box<dyn Instance>) -> Self {
        Self { instance, now: Timestamp::from_millis(1_800_000_000_000), last_id: 0 }
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.instance.store()
    }

    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    /// Moves the clock.
    pub(super) async fn advance(&mut self, duration: Duration) {
        self.now = self.now.after(duration);
        self.instance.set_clock(self.now).await;
    }

    /// Sets the clock back.
    pub(super) async fn set_back(&mut self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap();
        self.now = Timestamp::from_millis(self.now.as_millis() - millis);
        self.instance.set_clock(self.now).await;
    }

    pub(super) async fn reopen(&mut self) {
        self.instance.reopen().await;
    }

    /// Returns a new id.
    pub(super) fn id(&mut self) -> Uuid {
        self.last_id += 1;
        Uuid::from_u128(self.last_id)
    }

    pub(super) fn event(&self, kind: &str) -> NewEvent {
        super::records::event(kind, self.now)
    }

    /// Returns a new message to a chat.
    pub(super) fn message(&mut self, chat: &str) -> NewMessage {
        let (conversation, id, turn) = (self.id(), self.id(), self.id());
        message(Target::Address(new_conversation(conversation, chat, "")), id, turn, self.now)
    }

    pub(super) async fn accept(&mut self, message: NewMessage) -> AcceptedTurn {
        match self.store().accept(message, WIDE, self.now).await.unwrap() {
            Accepted::New(turn) => turn,
            other => panic!("the message is not new: {other:?}"),
        }
    }

    /// Accepts a new message to a chat.
    pub(super) async fn accept_in(&mut self, chat: &str) -> AcceptedTurn {
        let message = self.message(chat);
        self.accept(message).await
    }

    pub(super) fn request(worker: &str) -> ClaimRequest {
        ClaimRequest {
            worker: WorkerId::new(worker),
            host: HostId::new("host"),
            lease_for: LEASE,
            max_running: 100,
            max_running_per_chat: 100,
            affinity: Duration::ZERO,
        }
    }

    pub(super) async fn try_claim(&self, worker: &str) -> Option<Claim> {
        self.store().claim(Self::request(worker), self.now).await.unwrap()
    }

    pub(super) async fn claim(&self, worker: &str) -> Claim {
        self.try_claim(worker).await.unwrap()
    }

    /// Returns the whole log of a conversation.
    pub(super) async fn log(&self, conversation: ConversationId) -> Vec<Event> {
        self.store().events(conversation, Seq::START, 1000).await.unwrap().events
    }
}

/// Returns the end of an attempt that changes nothing else.
pub(super) const fn plain_end() -> AttemptEnd {
    AttemptEnd {
        session: SessionChange::Keep,
        usage: None,
        closings: Vec::new(),
        effects: Effects { events: Vec::new(), deliveries: Vec::new() },
    }
}

/// Returns the end of a turn with an answer.
pub(super) const fn done() -> Finish {
    Finish { state: EndState::Done, result: None, error_code: None, attempt: plain_end() }
}
