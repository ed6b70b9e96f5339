//! Whether messages can be accepted.

use std::time::Duration;

use teamster_store::Json;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::problem::{Problem, ProblemCode};
use crate::engine::Gateway;

/// How long a probe waits for the store.
const LIMIT: Duration = Duration::from_secs(5);

/// How long an answer is used for other probes: anyone can send them.
const SHARED_FOR: Duration = Duration::from_secs(2);

/// The document that a probe writes. Those of channels have a `:` in their keys.
const KEY: &str = "readiness";

/// When the last probe ended, and whether the store could be written.
#[derive(Debug, Default)]
pub(super) struct Readiness(Mutex<Option<(Instant, bool)>>);

impl Readiness {
    /// Writes to the store, as the acceptance of a message does. Calls at the same time share one write.
    ///
    /// # Errors
    /// The store cannot be written now.
    pub(super) async fn check(&self, gateway: &Gateway) -> Result<(), Problem> {
        let mut last = self.0.lock().await;
        let can_write = match *last {
            Some((at, can_write)) if at.elapsed() < SHARED_FOR => can_write,
            _ => {
                let can_write = can_write(gateway).await;
                *last = Some((Instant::now(), can_write));
                can_write
            }
        };
        if can_write {
            return Ok(());
        }
        let problem = "the store cannot be written now; the log of the gateway has the reason";
        Err(Problem::new(ProblemCode::StoreUnavailable, problem).retry_after(5))
    }
}

async fn can_write(gateway: &Gateway) -> bool {
    match timeout(LIMIT, gateway.store().set_channel_state(KEY.to_owned(), Json::empty())).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(%error, "the store cannot be written: the gateway is not ready");
            false
        }
        Err(_) => {
            tracing::warn!("the store does not answer in time: the gateway is not ready");
            false
        }
    }
}
