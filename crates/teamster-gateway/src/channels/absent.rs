//! Deliveries of channels that are no longer configured. They wait, and the operator sees them.

use std::collections::BTreeMap;
use std::time::Duration;

use teamster_store::{DeliveryFilter, DeliveryState, PageRequest, StoreError};

use super::pages::PAGE;
use crate::engine::Gateway;

/// The time between two checks: the API and schedules continue the conversations of such a channel.
const INTERVAL: Duration = Duration::from_hours(1);

/// Reports the waiting deliveries of channels without a configuration, until the gateway stops.
pub(super) async fn report(gateway: Gateway) {
    while !gateway.stopping().is_cancelled() {
        match waiting(&gateway).await {
            Ok(waiting) => {
                for (channel, count) in waiting {
                    let reason = format!("the channel is not configured, and {count} deliveries wait for it");
                    tracing::warn!(channel, reason, "deliveries are not sent");
                    gateway.channel_statuses().failed(&channel, reason, gateway.now());
                }
            }
            Err(error) => tracing::warn!(%error, "cannot count the deliveries of channels without a configuration"),
        }
        tokio::select! {
            () = gateway.stopping().cancelled() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Returns the number of waiting deliveries of each channel without a configuration.
async fn waiting(gateway: &Gateway) -> Result<BTreeMap<String, usize>, StoreError> {
    let mut waiting = BTreeMap::new();
    let filter = DeliveryFilter { state: Some(DeliveryState::Pending), ..DeliveryFilter::default() };
    let mut request = PageRequest::first(PAGE);
    loop {
        let page = gateway.store().deliveries(filter.clone(), request.clone()).await?;
        for delivery in page.items {
            let name = delivery.address.channel;
            if !gateway.channels().iter().any(|channel| channel.name() == name) {
                *waiting.entry(name).or_default() += 1;
            }
        }
        let Some(next) = page.next else { return Ok(waiting) };
        request.cursor = Some(next);
    }
}
