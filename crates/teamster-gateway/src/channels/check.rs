//! Checks the credentials and settings of a channel with its service.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use teamster_channel::{Channel, ChannelError};
use tokio::time::timeout;

use crate::engine::Gateway;

/// How long a service may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a channel cannot be used now. The texts contain no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The service cannot be reached, or does not answer. The gateway tries again.
    #[error("{0}")]
    Unreachable(String),
    /// The service or the configuration must be corrected.
    #[error("{0}")]
    Unusable(String),
}

/// Checks a channel with its service, without sending a message. A service that does not answer within 10 seconds cannot be
/// reached.
///
/// # Errors
/// The channel cannot be used now.
pub async fn check(channel: &dyn Channel) -> Result<(), CheckError> {
    match timeout(LIMIT, AssertUnwindSafe(channel.check()).catch_unwind()).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error @ ChannelError::Unreachable { .. }))) => Err(CheckError::Unreachable(error.to_string())),
        Ok(Ok(Err(error))) => Err(CheckError::Unusable(error.to_string())),
        Ok(Err(_)) => Err(CheckError::Unusable("the channel has panicked".to_owned())),
        Err(_) => {
            let seconds = LIMIT.as_secs();
            Err(CheckError::Unreachable(format!("the service does not answer within {seconds} seconds")))
        }
    }
}

/// Checks a channel once, for the operator. The channel already receives during the check, because the service may
/// answer later.
pub(super) async fn check_once(gateway: Gateway, channel: Arc<dyn Channel>) {
    let checked = tokio::select! {
        () = gateway.stopping().cancelled() => return,
        checked = check(&*channel) => checked,
    };
    if let Err(error) = checked {
        let reason = error.to_string();
        tracing::error!(channel = channel.name(), reason, "a channel cannot be used now");
        gateway.channel_statuses().failed(channel.name(), reason, gateway.now());
    }
}
