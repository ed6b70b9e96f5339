//! What the attempts at deliveries share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use teamster_channel::{Channel, Pace};
use teamster_store::{Delivery, DeliveryLease, DeliveryStep, Effects, StoreError};
use tokio_util::sync::CancellationToken;

use super::failpoint::Failpoint;
use crate::engine::Gateway;

/// What an attempt needs.
pub(super) struct Context {
    pub(super) gateway: Gateway,
    pub(super) channel: Arc<dyn Channel>,
    pub(super) pace: Arc<Mutex<Pace>>,
    /// The attempt ends before its next call.
    pub(super) stop: CancellationToken,
    pub(super) failpoint: Failpoint,
}

impl Context {
    /// Records a step. It is durable when this returns.
    pub(super) async fn step(&self, lease: DeliveryLease, step: DeliveryStep) -> Result<Delivery, StoreError> {
        self.gateway.store().advance_delivery(lease, step, Effects::default(), self.gateway.now()).await
    }

    pub(super) fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
