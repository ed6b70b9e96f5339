//! Turns and events.

use async_trait::async_trait;
use rusqlite::params;

use super::SqliteStore;
use super::query::{all, check_limit, first, key_of, page, value};
use super::rows::{EVENT_COLUMNS, TURNS, conversation_key, event, turn};
use super::values::{integer, unsigned};
use crate::error::{Entity, Result, StoreError};
use crate::feed_position::FeedPosition;
use crate::ids::{ConversationId, FeedCursor, Seq, TurnId};
use crate::records::{Event, EventPage, FeedEvent, FeedPage, Page, PageRequest, Turn};
use crate::store::LogStore;

/// The number of the last event of the feed, also if it is deleted.
const LAST_POSITION: &str = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'event'";

#[async_trait]
impl LogStore for SqliteStore {
    async fn turn(&self, id: TurnId) -> Result<Option<Turn>> {
        self.read(move |db| first(db, &format!("{TURNS} WHERE turn.id = ?1"), [id], turn)).await
    }

    async fn turn_of_message(&self, channel: String, channel_id: String) -> Result<Option<Turn>> {
        self.read(move |db| {
            let key = "SELECT channel_id.turn FROM channel_id WHERE channel_id.channel = ?1 AND channel_id.id = ?2";
            first(db, &format!("{TURNS} WHERE turn.key = ({key})"), [channel, channel_id], turn)
        })
        .await
    }

    async fn turns(&self, conversation: ConversationId, request: PageRequest) -> Result<Page<Turn>> {
        let limit = check_limit(request.limit)?;
        let after = key_of(request.cursor.as_ref())?;
        self.read(move |db| {
            let key = conversation_key(db, conversation)?;
            let sql = format!("{TURNS} WHERE turn.conversation = ?1 AND turn.key > ?2 ORDER BY turn.key LIMIT ?3");
            let params = params![key, after.unwrap_or_default(), limit.saturating_add(1)];
            Ok(page(all(db, &sql, params, |row| Ok((row.get("key")?, turn(row)?)))?, &request))
        })
        .await
    }

    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<Turn>> {
        self.read(move |db| {
            let key = conversation_key(db, conversation)?;
            // The indexes of waiting and of running turns answer this without reading the ended ones.
            let sql = format!("{TURNS} WHERE turn.conversation = ?1 AND turn.state IN (0, 1) ORDER BY turn.key");
            all(db, &sql, [key], turn)
        })
        .await
    }

    async fn waiting_turns(&self, channel: String, author: String, limit: u32) -> Result<u32> {
        self.read(move |db| {
            let sql =
                "SELECT count(*) FROM (SELECT 1 FROM turn JOIN conversation ON conversation.key = turn.conversation
                WHERE turn.state = 0 AND turn.author = ?2 AND conversation.channel = ?1 LIMIT ?3)";
            value(db, sql, params![channel, author, limit])
        })
        .await
    }

    async fn events(&self, conversation: ConversationId, after: Seq, limit: u32) -> Result<EventPage> {
        let limit = check_limit(limit)?;
        self.read(move |db| {
            let sql = "SELECT key, oldest_seq, last_seq FROM conversation WHERE id = ?1";
            let found = first(db, sql, [conversation], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            let (key, oldest, last_seq): (i64, Seq, Seq) =
                found.ok_or_else(|| StoreError::not_found(Entity::Conversation, conversation))?;
            if after.next() < oldest {
                return Err(StoreError::EventsPruned { oldest }.into());
            }
            let sql =
                format!("SELECT {EVENT_COLUMNS} FROM event WHERE conversation = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
            Ok(EventPage { events: all(db, &sql, params![key, after, limit], event)?, last_seq })
        })
        .await
    }

    async fn messages_before(&self, conversation: ConversationId, before: Seq, limit: u32) -> Result<Vec<Event>> {
        let limit = check_limit(limit)?;
        self.read(move |db| {
            let key = conversation_key(db, conversation)?;
            all(db, &messages_sql(), params![key, before, limit], event)
        })
        .await
    }

    async fn feed(&self, after: Option<FeedCursor>, limit: u32) -> Result<FeedPage> {
        let limit = check_limit(limit)?;
        self.read(move |db| {
            let pruned = "SELECT coalesce(max(value), 0) FROM mark WHERE name = 'pruned'";
            let pruned = unsigned(value(db, pruned, [])?);
            let position = FeedPosition::read(after.as_ref(), pruned, unsigned(value(db, LAST_POSITION, [])?))?;
            // SQLite commits one writer at a time, so positions become visible in their order.
            let sql = format!(
                "SELECT position, conversation.id AS conversation, {EVENT_COLUMNS}
                FROM event JOIN conversation ON conversation.key = event.conversation
                WHERE position > ?1 ORDER BY position LIMIT ?2"
            );
            let events = all(db, &sql, params![integer(position.after), limit], |row| {
                let cursor = position.at(unsigned(row.get("position")?));
                Ok(FeedEvent { conversation: row.get("conversation")?, event: event(row)?, cursor })
            })?;
            let end = || position.at(position.after);
            let cursor = events.last().map_or_else(end, |last| last.cursor.clone());
            Ok(FeedPage { events, cursor })
        })
        .await
    }

    async fn feed_end(&self) -> Result<FeedCursor> {
        self.read(|db| {
            let last: i64 = value(db, LAST_POSITION, [])?;
            Ok(FeedCursor::new(last.to_string()))
        })
        .await
    }
}

/// Reads messages and answers by an index of their own: between them, a log may have a hundred thousand events. The index is
/// used only if the condition on the type is that of the index.
fn messages_sql() -> String {
    format!(
        "SELECT {EVENT_COLUMNS} FROM event WHERE conversation = ?1 AND seq < ?2
            AND kind IN ('turn_queued', 'turn_edited', 'done', 'conversation_restarted')
        ORDER BY seq DESC LIMIT ?3"
    )
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::open::MIGRATIONS;
    use super::*;
    use crate::records::MESSAGE_EVENTS;

    #[test]
    fn messages_are_read_by_an_index_of_their_own() {
        let db = Connection::open_in_memory().unwrap();
        for migration in MIGRATIONS {
            db.execute_batch(migration).unwrap();
        }
        let plan: String = db
            .query_row(&format!("EXPLAIN QUERY PLAN {}", messages_sql()), params![1, 1, 1], |row| row.get(3))
            .unwrap();
        assert!(plan.contains("USING INDEX event_message"), "{plan}");
        for kind in MESSAGE_EVENTS {
            assert!(messages_sql().contains(&format!("'{kind}'")), "{kind}");
        }
    }
}
