//! The delivery queue in the model.

use async_trait::async_trait;

use super::MemoryStore;
use super::state::{Key, QueuedDelivery, State, check_limit, page};
use crate::error::{Entity, Result, StoreError};
use crate::ids::{DeliveryId, Epoch, Timestamp};
use crate::records::{
    ClaimedDelivery, Delivery, DeliveryClaim, DeliveryFilter, DeliveryLease, DeliveryPart, DeliveryState, DeliveryStep,
    Effects, LONGEST_DELIVERY_DELAY, NewDelivery, Page, PageRequest, PartState,
};
use crate::store::DeliveryStore;

#[async_trait]
impl DeliveryStore for MemoryStore {
    async fn enqueue(&self, deliveries: Vec<NewDelivery>, now: Timestamp) -> Result<u32> {
        self.with(|state| {
            state.check_deliveries(&deliveries)?;
            Ok(state.add_deliveries(deliveries, now))
        })
    }

    async fn claim_deliveries(&self, claim: DeliveryClaim, now: Timestamp) -> Result<Vec<ClaimedDelivery>> {
        self.with(|state| {
            let limit = check_limit(claim.limit)?;
            let mut ready = Vec::new();
            for (key, one) in &state.deliveries {
                let is_served = claim.channels.contains(&one.delivery.address.channel);
                if let Some(at) = one.ready_at().filter(|at| *at <= now || one.is_overdue(now))
                    && is_served
                    && state.is_first(*key, one)
                {
                    ready.push((at, *key));
                }
            }
            ready.sort_unstable();
            let expires_at = now.after(claim.lease_for);
            let mut claimed = Vec::new();
            for (_, key) in ready.into_iter().take(limit) {
                if let Some(one) = state.deliveries.get_mut(&key) {
                    one.epoch = one.epoch.next();
                    one.held = Some((claim.worker.clone(), expires_at));
                    one.delivery.state = DeliveryState::Sending;
                    one.delivery.attempts += 1;
                    let lease = DeliveryLease { delivery: one.delivery.id, epoch: one.epoch };
                    claimed.push(ClaimedDelivery { lease, expires_at, delivery: one.delivery.clone() });
                }
            }
            Ok(claimed)
        })
    }

    async fn advance_delivery(
        &self,
        lease: DeliveryLease,
        step: DeliveryStep,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Delivery> {
        self.with(|state| {
            let key = state.leased(lease)?;
            state.check_deliveries(&effects.deliveries)?;
            let one = state.deliveries.get_mut(&key).ok_or(lost(lease))?;
            one.advance(lease, step, now)?;
            let delivery = one.delivery.clone();
            match delivery.conversation.filter(|id| state.conversations.contains_key(id)) {
                Some(id) => _ = state.apply(id, effects, now)?,
                None => _ = state.add_deliveries(effects.deliveries, now),
            }
            Ok(delivery)
        })
    }

    async fn retry_delivery(&self, id: DeliveryId, now: Timestamp) -> Result<Delivery> {
        self.with(|state| {
            let found = state.deliveries.values_mut().find(|one| one.delivery.id == id);
            let delivery = &mut found.ok_or_else(|| StoreError::not_found(Entity::Delivery, id))?.delivery;
            if !matches!(delivery.state, DeliveryState::Failed | DeliveryState::Unknown) {
                return Err(StoreError::WrongState {
                    entity: Entity::Delivery,
                    id: id.to_string(),
                    state: delivery.state.name(),
                    required: "failed or unknown",
                });
            }
            delivery.state = DeliveryState::Pending;
            delivery.attempts = 0;
            delivery.not_before = now;
            delivery.ended_at = None;
            Ok(delivery.clone())
        })
    }

    async fn deliveries(&self, filter: DeliveryFilter, request: PageRequest) -> Result<Page<Delivery>> {
        self.with(|state| {
            let matches = |one: &Delivery| {
                filter.state.is_none_or(|state| one.state == state)
                    && filter.conversation.is_none_or(|id| one.conversation == Some(id))
                    && filter.turn.is_none_or(|id| one.turn == Some(id))
            };
            let found = state.deliveries.iter().filter(|(_, one)| matches(&one.delivery));
            page(found.map(|(key, one)| (*key, one.delivery.clone())), &request)
        })
    }
}

fn lost(lease: DeliveryLease) -> StoreError {
    StoreError::DeliveryLeaseLost { delivery: lease.delivery, epoch: lease.epoch }
}

impl State {
    fn leased(&self, lease: DeliveryLease) -> Result<Key> {
        let mut found = self.deliveries.iter().filter(|(_, one)| one.delivery.id == lease.delivery);
        match found.next() {
            Some((key, one)) if one.held.is_some() && one.epoch == lease.epoch => Ok(*key),
            _ => Err(lost(lease)),
        }
    }

    /// Whether no earlier delivery of the chat waits.
    fn is_first(&self, key: Key, one: &QueuedDelivery) -> bool {
        let address = &one.delivery.address;
        let is_same_chat = |other: &QueuedDelivery| {
            other.delivery.address.channel == address.channel && other.delivery.address.chat == address.chat
        };
        !self.deliveries.range(..key).any(|(_, other)| other.ready_at().is_some() && is_same_chat(other))
    }
}

impl QueuedDelivery {
    /// Returns when it can be claimed. `None` if it has ended.
    fn ready_at(&self) -> Option<Timestamp> {
        match self.delivery.state {
            DeliveryState::Pending => Some(self.delivery.not_before),
            DeliveryState::Sending => self.held.as_ref().map(|(_, until)| *until),
            DeliveryState::Sent | DeliveryState::Failed | DeliveryState::Unknown => None,
        }
    }

    /// Returns whether its time was set by a wrong clock: it was never claimed and has no delay, or has a delay above the maximum.
    fn is_overdue(&self, now: Timestamp) -> bool {
        let Delivery { state, not_before, created_at, .. } = &self.delivery;
        *state == DeliveryState::Pending
            && ((not_before <= created_at && self.epoch == Epoch::default())
                || *not_before > now.after(LONGEST_DELIVERY_DELAY))
    }

    fn advance(&mut self, lease: DeliveryLease, step: DeliveryStep, now: Timestamp) -> Result<()> {
        let delivery = &mut self.delivery;
        let found = |parts: &[DeliveryPart], index| parts.iter().position(|part| part.index == index);
        match step {
            DeliveryStep::Renew(lease_for) => match &mut self.held {
                Some((_, until)) if *until > now => *until = now.after(lease_for),
                _ => return Err(lost(lease)),
            },
            DeliveryStep::PartStarted(index) => match found(&delivery.parts, index) {
                Some(at) if delivery.parts.get(at).is_some_and(|part| part.state != PartState::Started) => {
                    return Err(StoreError::Invalid { reason: "this part of the delivery is confirmed" });
                }
                Some(_) => {}
                None => set_part(&mut delivery.parts, index, PartState::Started),
            },
            DeliveryStep::PartSent(index, id) => set_part(&mut delivery.parts, index, PartState::Sent(id)),
            DeliveryStep::PartNotSent(index) => delivery.parts.retain(|part| part.index != index),
            DeliveryStep::Sent => {
                if delivery.parts.iter().any(|part| part.state == PartState::Started) {
                    return Err(StoreError::Invalid { reason: "a part of the delivery is not confirmed" });
                }
                self.end(DeliveryState::Sent, None, now);
            }
            DeliveryStep::Retry(at, error) => {
                delivery.state = DeliveryState::Pending;
                delivery.not_before = at;
                delivery.error = Some(error);
                self.held = None;
            }
            DeliveryStep::Postpone(at) => {
                delivery.state = DeliveryState::Pending;
                delivery.not_before = at;
                delivery.attempts = delivery.attempts.saturating_sub(1);
                self.held = None;
            }
            DeliveryStep::Wait { at, error, attempts } => {
                delivery.state = DeliveryState::Pending;
                delivery.not_before = at;
                delivery.error = Some(error);
                delivery.attempts = attempts;
                self.held = None;
            }
            DeliveryStep::Failed(error) => self.end(DeliveryState::Failed, Some(error), now),
            DeliveryStep::Unknown(error) => self.end(DeliveryState::Unknown, Some(error), now),
        }
        Ok(())
    }

    fn end(&mut self, state: DeliveryState, error: Option<String>, now: Timestamp) {
        self.held = None;
        self.delivery.state = state;
        self.delivery.error = error;
        self.delivery.ended_at = Some(now);
    }
}

fn set_part(parts: &mut Vec<DeliveryPart>, index: u32, state: PartState) {
    parts.retain(|part| part.index != index);
    parts.push(DeliveryPart { index, state });
    parts.sort_by_key(|part| part.index);
}
