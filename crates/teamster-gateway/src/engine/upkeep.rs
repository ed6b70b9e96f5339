//! Regular work: idle sessions are closed, and old data is deleted.

use std::time::Duration;

use teamster_store::{RetentionPolicy, Timestamp};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::gateway::Shared;

/// The interval of the check for idle sessions.
const TICK: Duration = Duration::from_secs(1);

/// The interval of retention.
const RETENTION: Duration = Duration::from_mins(1);

/// The interval in which old attachments are deleted.
const FILES: Duration = Duration::from_hours(1);

/// The number of rows of each kind that one transaction deletes. It delays other writes for a few milliseconds.
const BATCH: u32 = 500;

/// Does the regular work until the task is dropped.
pub(super) async fn run(shared: &Shared) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pruned = Instant::now();
    let mut swept = None;
    loop {
        ticks.tick().await;
        shared.sessions.close_idle(shared.config.timing.idle_timeout);
        if pruned.elapsed() >= RETENTION {
            pruned = Instant::now();
            prune(shared).await;
        }
        if swept.is_none_or(|swept: Instant| swept.elapsed() >= FILES) {
            swept = Some(Instant::now());
            remove_files(shared).await;
        }
    }
}

async fn remove_files(shared: &Shared) {
    let Some(age) = shared.config.retention.files else { return };
    match shared.attachments.remove_older(age).await {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, "old attachments were deleted"),
        Err(error) => tracing::error!(%error, "old attachments cannot be deleted"),
    }
}

async fn prune(shared: &Shared) {
    let now = shared.clock.now();
    let retention = &shared.config.retention;
    if retention.events.is_none() && retention.events_per_conversation.is_none() && retention.turns.is_none() {
        return;
    }
    let policy = RetentionPolicy {
        events_before: retention.events.map(|age| before(now, age)),
        max_events: retention.events_per_conversation,
        ended_before: retention.turns.map(|age| before(now, age)),
        batch: BATCH,
    };
    loop {
        match shared.store.prune(policy, now).await {
            Ok(pruned) if pruned.more => {}
            Ok(_) => return,
            Err(error) => {
                tracing::error!(%error, "old data cannot be deleted");
                return;
            }
        }
    }
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(age))
}
