//! Regular maintenance: closes idle sessions and deletes old data.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use teamster_store::{RetentionPolicy, Timestamp};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::gateway::Shared;

/// The interval of the check for idle sessions.
const TICK: Duration = Duration::from_secs(1);

/// The interval of retention.
const RETENTION: Duration = Duration::from_mins(1);

/// The interval in which old attachments are deleted.
const FILES: Duration = Duration::from_hours(1);

/// How long a file is kept to which no message refers, for example after an upload.
const KEPT_FILES: Duration = Duration::from_hours(24);

/// The number of rows of each kind that one transaction deletes. It delays other writes for a few milliseconds.
const BATCH: u32 = 500;

/// Runs until the task is dropped.
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
            if let Err(error) = delete_unnamed(shared, SystemTime::now() - KEPT_FILES).await {
                tracing::error!(%error, "attachments to which no message refers cannot be deleted");
            }
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

/// Deletes the files that were not used since a time and to which no message or delivery refers: those of deleted
/// messages, and uploads without a message.
async fn delete_unnamed(shared: &Shared, time: SystemTime) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut unused = shared.attachments.unused_since(time).await?;
    if unused.is_empty() {
        return Ok(());
    }
    let needed: HashSet<_> = shared.store.needed_files(unused.clone()).await?.into_iter().collect();
    unused.retain(|hash| !needed.contains(hash));
    if !unused.is_empty() {
        tracing::info!(files = unused.len(), "attachments to which no message refers are deleted");
        shared.attachments.delete_unused(unused, time).await?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use teamster_store::MessageMode;

    use super::*;
    use crate::attachments::StoredAttachment;
    use crate::engine::{IncomingMessage, MessageTarget};
    use crate::testing::{TestGateway, chat};

    #[tokio::test]
    async fn files_go_with_the_messages_that_name_them() {
        let test = TestGateway::new(|_| {});
        let files = test.gateway.attachments();
        let (named, unnamed) = (files.put(b"named".to_vec()).await.unwrap(), files.put(b"x".to_vec()).await.unwrap());
        let name = "a.txt".to_owned();
        let attachment = StoredAttachment { name, media_type: "text/plain".to_owned(), hash: named.clone(), size: 5 };
        let message = IncomingMessage {
            target: MessageTarget::Address(chat("garden")),
            channel_ids: Vec::new(),
            idempotency: None,
            author: "ann".to_owned(),
            text: "see".to_owned(),
            attachments: vec![attachment],
            mode: MessageMode::Queue,
        };
        let conversation = test.gateway.accept(message).await.unwrap().turn.conversation;
        // A file that was used lately is kept for a message that comes.
        delete_unnamed(&test.gateway.shared, SystemTime::now() - KEPT_FILES).await.unwrap();
        assert!(files.get(&unnamed).await.is_ok());
        let later = SystemTime::now() + Duration::from_secs(1);
        delete_unnamed(&test.gateway.shared, later).await.unwrap();
        assert!(files.get(&unnamed).await.is_err() && files.get(&named).await.is_ok());
        test.gateway.delete_conversation(conversation).await.unwrap();
        delete_unnamed(&test.gateway.shared, later).await.unwrap();
        assert!(files.get(&named).await.is_err());
    }
}
