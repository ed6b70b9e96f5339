//! Generates the input of operations and compares their results.

use std::fmt::Debug;
use std::time::Duration;

use uuid::Uuid;

use super::super::records::{delivery, event, key, message, new_conversation};
use super::super::subject::Instance;
use super::super::world::LEASE;
use super::operation::{Kind, Operation};
use crate::error::{Result, StoreError};
use crate::ids::{
    ConversationId, DeliveryId, HostId, Json, PermissionId, ScheduleId, Seq, Timestamp, TurnId, WorkerId,
};
use crate::memory::MemoryStore;
use crate::records::{
    Accepted, ConversationPatch, DeliveryLease, Effects, Fork, Lease, MessageEdit, MessageMode, NewDelivery,
    NewSchedule, QueueLimits, RetentionPolicy, ScheduleFiring, Target,
};

pub(super) struct Driver {
    pub(super) model: MemoryStore,
    pub(super) instance: Box<dyn Instance>,
    pub(super) now: Timestamp,
    last_id: u128,
    pub(super) conversations: Vec<ConversationId>,
    pub(super) turns: Vec<TurnId>,
    pub(super) leases: Vec<Lease>,
    pub(super) permissions: Vec<PermissionId>,
    pub(super) deliveries: Vec<DeliveryId>,
    pub(super) delivery_leases: Vec<DeliveryLease>,
    schedules: Vec<(ScheduleId, ConversationId, Timestamp)>,
}

/// Calls both sides with the same arguments, and returns the result if it is not an error.
macro_rules! both {
    ($driver:expr, $method:ident ( $($argument:expr),* $(,)? )) => {{
        let expected = crate::conformance::stateful::driver::model(&$driver.model).$method($($argument.clone()),*).await;
        let found = $driver.instance.store().$method($($argument.clone()),*).await;
        crate::conformance::stateful::driver::same(expected, found)
    }};
}
pub(super) use both;

pub(super) fn model(model: &MemoryStore) -> &dyn crate::store::Store {
    model
}

/// Compares two results. Errors are compared by their texts. If an id is in use and the call has another fault too, it may
/// report either fault.
pub(super) fn same<T: Debug + PartialEq>(expected: Result<T>, found: Result<T>) -> Option<T> {
    match (expected, found) {
        (Ok(expected), Ok(found)) => {
            assert_eq!(found, expected, "the model (right) has another result");
            Some(expected)
        }
        (Err(StoreError::Exists { .. }), Err(_)) | (Err(_), Err(StoreError::Exists { .. })) => None,
        (Err(expected), Err(found)) => {
            assert_eq!(found.to_string(), expected.to_string(), "the model (right) has another error");
            None
        }
        (expected, found) => panic!("the model has {expected:?}, the store has {found:?}"),
    }
}

/// Returns an item by any number.
pub(super) fn pick<T: Copy>(items: &[T], number: u8) -> Option<T> {
    items.get(usize::from(number).checked_rem(items.len())?).copied()
}

pub(super) fn worker(number: u8) -> WorkerId {
    WorkerId::new(format!("worker-{}", number % 3))
}

pub(super) fn host(number: u8) -> HostId {
    HostId::new(format!("host-{}", number % 2))
}

impl Driver {
    pub(super) fn new(model: MemoryStore, instance: Box<dyn Instance>) -> Self {
        Self {
            model,
            instance,
            now: Timestamp::from_millis(1_800_000_000_000),
            last_id: 0,
            conversations: Vec::new(),
            turns: Vec::new(),
            leases: Vec::new(),
            permissions: Vec::new(),
            deliveries: Vec::new(),
            delivery_leases: Vec::new(),
            schedules: Vec::new(),
        }
    }

    pub(super) fn id(&mut self) -> Uuid {
        self.last_id += 1;
        Uuid::from_u128(self.last_id)
    }

    /// Returns an id that was used before for some numbers.
    pub(super) fn id_or<T: Copy>(&mut self, known: &[T], number: u8, make: fn(Uuid) -> T) -> T {
        match pick(known, number).filter(|_| number % 16 == 15) {
            Some(known) => known,
            None => make(self.id()),
        }
    }

    pub(super) fn new_delivery(&mut self, number: u8, conversation: Option<ConversationId>) -> NewDelivery {
        let id = self.id();
        let chat = ["a", "b"][usize::from(number % 2)];
        let not_before = self.now.after(Duration::from_secs(u64::from(number % 3)));
        let mut new = delivery(id, chat, not_before);
        // A small set of keys makes repeated ones common.
        if number.is_multiple_of(4) {
            new.key = format!("key-{}", number % 32);
        }
        new.id = self.id_or(&self.deliveries.clone(), number, DeliveryId::new);
        new.conversation = conversation;
        self.deliveries.push(new.id);
        new
    }

    /// Returns effects with up to two events and up to one delivery.
    pub(super) fn effects(&mut self, number: u8, lease: Option<Lease>) -> Effects {
        let mut event = event("text", self.now);
        event.turn = lease.map(|lease| lease.turn);
        let events = vec![event; usize::from(number % 3)];
        let conversation = lease.map(|lease| lease.conversation);
        let deliveries =
            if number.is_multiple_of(5) { vec![self.new_delivery(number, conversation)] } else { Vec::new() };
        Effects { events, deliveries }
    }

    pub(super) async fn run(&mut self, operation: Operation) {
        let Operation { kind, first, second, third } = operation;
        match kind {
            Kind::Advance => {
                // From zero to almost two leases.
                self.now = self.now.after(LEASE * u32::from(first) / 128);
                self.instance.set_clock(self.now).await;
            }
            Kind::Accept => self.accept(first, second, third).await,
            Kind::Edit => {
                let edit = MessageEdit {
                    channel: "webhook".to_owned(),
                    channel_id: format!("m-{}", first % 12),
                    text: "Other".to_owned(),
                    details: (first % 2 == 0).then(Json::empty),
                    events: vec![event("message_edited", self.now)],
                };
                both!(self, turn_of_message(edit.channel, edit.channel_id));
                both!(self, edit_message(edit, self.now));
            }
            Kind::Update | Kind::Resume | Kind::Fork | Kind::Delete => {
                self.change_conversation(kind, first, second, third).await;
            }
            Kind::PutSchedule | Kind::FireSchedule => self.schedule(kind, first, second, third).await,
            Kind::Prune => {
                let before = |number: u8| number.is_multiple_of(3).then_some(self.now);
                let policy = RetentionPolicy {
                    events_before: before(first),
                    max_events: first.is_multiple_of(2).then_some(u64::from(third % 8)),
                    ended_before: before(second),
                    batch: u32::from(third % 6),
                };
                both!(self, prune(policy, self.now));
            }
            Kind::Reopen => self.instance.reopen().await,
            _ => self.run_work(operation).await,
        }
    }

    async fn accept(&mut self, first: u8, second: u8, third: u8) {
        let (conversation, id, turn) = (self.id(), self.id(), self.id());
        let (chat, thread) = [("a", ""), ("a", "t"), ("b", ""), ("c", "")][usize::from(first % 4)];
        let target = match pick(&self.conversations, second).filter(|_| second.is_multiple_of(3)) {
            Some(known) => Target::Existing(known),
            None => Target::Address(new_conversation(conversation, chat, thread)),
        };
        let mut new = message(target, id, turn, self.now);
        new.channel_ids = (0..third % 3).map(|number| format!("m-{}", (second ^ number) % 12)).collect();
        new.idempotency = third.is_multiple_of(4).then(|| key(&format!("k-{}", first % 4), second % 2));
        new.mode = if third.is_multiple_of(2) { MessageMode::Queue } else { MessageMode::Steer };
        let limits = QueueLimits { chat: 4, total: 7 };
        let channel = "webhook".to_owned();
        both!(self, known_message(channel, new.channel_ids, new.idempotency));
        let accepted = both!(self, accept(new, limits, self.now));
        self.learn(accepted);
    }

    fn learn(&mut self, accepted: Option<Accepted>) {
        if let Some(Accepted::New(new)) = accepted {
            self.turns.push(new.turn);
            if !self.conversations.contains(&new.conversation) {
                self.conversations.push(new.conversation);
            }
        }
    }

    async fn change_conversation(&mut self, kind: Kind, first: u8, second: u8, third: u8) {
        let Some(id) = pick(&self.conversations, first) else { return };
        let effects = self.effects(third, None);
        match kind {
            Kind::Update => {
                let agent = ["claude", "codex"][usize::from(second % 2)];
                let patch = ConversationPatch {
                    agent: second.is_multiple_of(3).then(|| agent.to_owned()),
                    title: second.is_multiple_of(4).then(|| third.is_multiple_of(2).then(|| "Title".to_owned())),
                    settings: second.is_multiple_of(5).then(Json::empty),
                    expected_version: third.is_multiple_of(4).then_some(u64::from(third % 3)),
                };
                both!(self, update_conversation(id, patch, effects, self.now));
            }
            Kind::Resume => _ = both!(self, resume_conversation(id, effects, self.now)),
            Kind::Fork => {
                let new = new_conversation(self.id(), "fork", &(second % 4).to_string());
                let fork = Fork { from: id, after: Seq::new(u64::from(third % 16)) };
                let made = both!(self, create_conversation(new, Some(fork), self.now));
                self.conversations.extend(made.map(|made| made.id));
            }
            _ => _ = both!(self, delete_conversation(id, self.now)),
        }
    }

    async fn schedule(&mut self, kind: Kind, first: u8, second: u8, third: u8) {
        let at = self.now.after(Duration::from_secs(u64::from(third % 4)));
        if matches!(kind, Kind::PutSchedule) {
            let Some(conversation) = pick(&self.conversations, first) else { return };
            let known = pick(&self.schedules, second).filter(|_| second.is_multiple_of(2));
            let id = known.map_or_else(|| ScheduleId::new(self.id()), |(id, ..)| id);
            let new = NewSchedule { id, conversation, body: Json::empty(), next_at: Some(at) };
            if both!(self, put_schedule(new, self.now)).is_some() {
                self.schedules.push((id, conversation, at));
            }
            return;
        }
        let Some((id, conversation, due_at)) = pick(&self.schedules, first) else { return };
        let (message_id, turn) = (self.id(), self.id());
        let new = message(Target::Existing(conversation), message_id, turn, self.now);
        let firing = ScheduleFiring {
            id,
            due_at,
            next_at: second.is_multiple_of(2).then_some(at),
            message: (!second.is_multiple_of(3)).then_some(new),
            effects: self.effects(third, None),
        };
        self.schedules.push((id, conversation, at));
        let fired = both!(self, fire_schedule(firing, QueueLimits { chat: 4, total: 7 }, self.now));
        if let Some(crate::records::FireOutcome::Fired(accepted)) = fired {
            self.learn(accepted);
        }
    }
}
