//! Checks the credentials and settings of a channel with its service.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use teamster_channel::Channel;
use tokio::time::timeout;

use crate::engine::Gateway;

/// How long a service may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Checks a channel with its service, without sending a message. A service that does not answer within 10 seconds is a problem.
///
/// # Errors
/// Returns why the channel cannot be used, without secrets.
pub async fn check(channel: &dyn Channel) -> Result<(), String> {
    match timeout(LIMIT, AssertUnwindSafe(channel.check()).catch_unwind()).await {
        Ok(Ok(checked)) => checked.map_err(|error| error.to_string()),
        Ok(Err(_)) => Err("the channel has panicked".to_owned()),
        Err(_) => Err(format!("the service does not answer within {} seconds", LIMIT.as_secs())),
    }
}

/// Checks a channel once, for the operator. The channel already receives during the check, because the service may
/// answer later.
pub(super) async fn check_once(gateway: Gateway, channel: Arc<dyn Channel>) {
    let checked = tokio::select! {
        () = gateway.stopping().cancelled() => return,
        checked = check(&*channel) => checked,
    };
    if let Err(reason) = checked {
        tracing::error!(channel = channel.name(), reason, "a channel cannot be used now");
        gateway.channel_statuses().failed(channel.name(), reason, gateway.now());
    }
}
