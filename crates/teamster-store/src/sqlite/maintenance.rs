//! Usage, retention, state of channels and figures.

use std::ffi::OsString;
use std::path::Path;

use async_trait::async_trait;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::failure::Outcome;
use super::query::{all, check_limit, first, run, value};
use super::retention::prune;
use super::rows::usage;
use super::values::unsigned;
use super::work::budget_status;
use crate::error::Result;
use crate::file_names::take_names;
use crate::ids::{Day, Json, Timestamp};
use crate::records::{BudgetStatus, Pruned, RetentionPolicy, StoreStatus, UsageQuery, UsageRow};
use crate::store::MaintenanceStore;

/// The queries for documents that may name files. Those of turns and events use indexes with the same conditions.
const FILE_DOCUMENTS: [&str; 3] = [
    "SELECT details FROM turn WHERE instr(details, '\"hash\"') > 0",
    "SELECT body FROM delivery WHERE instr(body, '\"hash\"') > 0",
    "SELECT body FROM event WHERE kind = 'message_sent'",
];

#[async_trait]
impl MaintenanceStore for SqliteStore {
    async fn usage(&self, query: UsageQuery) -> Result<Vec<UsageRow>> {
        self.search(move |db| {
            let sql = "SELECT day, agent, conversation, author, input_tokens, output_tokens, cost_micros FROM usage
                WHERE day BETWEEN ?1 AND ?2 AND (?3 IS NULL OR conversation = ?3)
                ORDER BY day, agent, conversation, author";
            all(db, sql, params![query.from, query.to, query.conversation], |row| {
                Ok(UsageRow {
                    day: row.get("day")?,
                    agent: row.get("agent")?,
                    conversation: row.get("conversation")?,
                    author: row.get("author")?,
                    usage: usage(row)?,
                })
            })
        })
        .await
    }

    async fn budget(&self, scope: String, day: Day) -> Result<BudgetStatus> {
        self.read(move |db| budget_status(db, &scope, day, None)).await
    }

    async fn prune(&self, policy: RetentionPolicy, _now: Timestamp) -> Result<Pruned> {
        let batch = check_limit(policy.batch)?;
        self.write(move |db| prune(db, policy, batch)).await
    }

    async fn needed_files(&self, hashes: Vec<String>) -> Result<Vec<String>> {
        self.read(move |db| {
            let (mut wanted, mut found) = (hashes.into_iter().collect(), Vec::new());
            for sql in FILE_DOCUMENTS {
                let mut statement = db.prepare_cached(sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    take_names(row.get_ref(0)?.as_str().unwrap_or_default(), &mut wanted, &mut found);
                }
            }
            found.sort_unstable();
            Ok(found)
        })
        .await
    }

    async fn set_channel_state(&self, key: String, state: Json) -> Result<()> {
        self.write(move |db| {
            run(db, "INSERT OR REPLACE INTO channel_state (key, value) VALUES (?1, ?2)", params![key, state])?;
            Ok(())
        })
        .await
    }

    async fn channel_state(&self, key: String) -> Result<Option<Json>> {
        self.read(move |db| first(db, "SELECT value FROM channel_state WHERE key = ?1", [key], |row| row.get(0))).await
    }

    async fn status(&self, now: Timestamp) -> Result<StoreStatus> {
        let path = self.path().to_owned();
        self.read(move |db| {
            let mut status = counts(db, now)?;
            status.bytes = size(&path);
            Ok(status)
        })
        .await
    }
}

fn counts(db: &Connection, now: Timestamp) -> Outcome<StoreStatus> {
    let count = |sql: &str| value(db, sql, []).map(unsigned);
    let expired = "SELECT count(*) FROM conversation WHERE worker IS NOT NULL AND lease_until <= ?1";
    Ok(StoreStatus {
        conversations: count("SELECT count(*) FROM conversation")?,
        queued_turns: count("SELECT count(*) FROM turn WHERE state = 0")?,
        running_turns: count("SELECT count(*) FROM turn WHERE state = 1")?,
        expired_leases: value(db, expired, [now]).map(unsigned)?,
        open_permissions: count("SELECT count(*) FROM permission WHERE outcome IS NULL")?,
        pending_deliveries: count("SELECT count(*) FROM delivery WHERE ready_at IS NOT NULL")?,
        failed_deliveries: count("SELECT count(*) FROM delivery WHERE state IN (3, 4)")?,
        waiting_since: value(db, "SELECT min(ready_at) FROM conversation WHERE ready_at <= ?1", [now])?,
        bytes: 0,
    })
}

/// Returns the size of the file and its write-ahead log.
fn size(path: &Path) -> u64 {
    let mut log = OsString::from(path);
    log.push("-wal");
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    bytes(path).saturating_add(bytes(Path::new(&log)))
}
