//! `getUpdates`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::error::ApiError;
use super::world::{Shared, World};
use crate::params::Params;

/// The largest number of updates of a poll.
const MAX_UPDATES: i64 = 100;

/// The longest poll in seconds.
const MAX_TIMEOUT: i64 = 50;

/// Waits for updates.
pub(super) async fn get_updates(shared: &Arc<Shared>, params: &Params) -> Result<Value, ApiError> {
    let timeout = params.number("timeout").unwrap_or(0).clamp(0, MAX_TIMEOUT);
    let limit = params.number("limit").unwrap_or(MAX_UPDATES).clamp(1, MAX_UPDATES);
    let number = shared.change(|world| -> Result<u64, ApiError> {
        check(world)?;
        if let Some(Value::Array(kinds)) = params.json("allowed_updates") {
            let kinds = kinds.iter().filter_map(|kind| kind.as_str().map(str::to_owned)).collect();
            world.set_allowed_updates(kinds);
        }
        confirm(world, params.number("offset").unwrap_or(0));
        world.polls += 1;
        Ok(world.polls)
    })?;
    let mut changes = shared.changes();
    let found = async {
        loop {
            {
                let world = shared.world();
                check(&world)?;
                if world.polls != number {
                    let problem = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is \
                                   running";
                    return Err(ApiError::new(409, problem));
                }
                if !world.updates.is_empty() {
                    let limit = usize::try_from(limit).unwrap_or(1);
                    let updates: Vec<_> = world.updates.iter().take(limit).map(|(_, update)| update.clone()).collect();
                    return Ok(json!(updates));
                }
            }
            if changes.changed().await.is_err() {
                return Ok(json!([]));
            }
        }
    };
    let timeout = Duration::from_secs(u64::try_from(timeout).unwrap_or(0));
    // A poll without a time looks once.
    tokio::time::timeout(timeout.max(Duration::from_millis(1)), found).await.unwrap_or_else(|_| Ok(json!([])))
}

fn check(world: &World) -> Result<(), ApiError> {
    if world.webhook.is_empty() {
        return Ok(());
    }
    let problem =
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
    Err(ApiError::new(409, problem))
}

/// Confirms the updates below an offset. A negative one keeps the last updates.
fn confirm(world: &mut World, offset: i64) {
    if offset < 0 {
        let kept = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        while world.updates.len() > kept {
            world.updates.pop_front();
        }
    } else if offset > 0 {
        world.updates.retain(|(id, _)| *id >= offset);
    }
}
