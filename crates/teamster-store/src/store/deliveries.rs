//! The delivery queue.

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::{DeliveryId, Timestamp};
use crate::records::{
    ClaimedDelivery, Delivery, DeliveryClaim, DeliveryFilter, DeliveryLease, DeliveryStep, Effects, NewDelivery, Page,
    PageRequest,
};

/// Sends deliveries, in order per chat.
#[async_trait]
pub trait DeliveryStore: Send + Sync {
    /// Adds deliveries that belong to no other operation, and returns how many have new keys.
    async fn enqueue(&self, deliveries: Vec<NewDelivery>, now: Timestamp) -> Result<u32>;

    /// Claims deliveries: of each chat only the first that has not ended, those that have waited longest first.
    ///
    /// A delivery whose lease has expired is claimed again, with its parts as they were.
    async fn claim_deliveries(&self, claim: DeliveryClaim, now: Timestamp) -> Result<Vec<ClaimedDelivery>>;

    /// Records a step of a delivery. Fails with `DeliveryLeaseLost` after another claim or after the end.
    ///
    /// The effects go to the log of the delivery's conversation; events are dropped if it has none or it is deleted.
    async fn advance_delivery(
        &self,
        lease: DeliveryLease,
        step: DeliveryStep,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Delivery>;

    /// Queues a failed or unknown delivery again, at its old position, with no attempts counted. Fails with `WrongState` for
    /// others.
    async fn retry_delivery(&self, id: DeliveryId, now: Timestamp) -> Result<Delivery>;

    /// Lists deliveries, the oldest first.
    async fn deliveries(&self, filter: DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>>;
}
