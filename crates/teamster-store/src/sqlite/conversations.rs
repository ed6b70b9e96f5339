//! Conversations.

use async_trait::async_trait;
use rusqlite::{Connection, named_params, params};

use super::SqliteStore;
use super::effects::{append_events, apply, refresh_ready};
use super::failure::Outcome;
use super::query::{all, check_limit, cut_page, first, key_of, page, run};
use super::rows::{CONVERSATIONS, EVENT_COLUMNS, conversation, conversation_key, event, find_conversation};
use super::values::{integer, unsigned};
use crate::error::{Entity, Result, StoreError, TOO_LARGE_FORK};
use crate::ids::{ConversationId, Seq, Timestamp};
use crate::records::{
    ChatAddress, Conversation, ConversationFilter, ConversationPatch, Effects, Event, Fork, MAX_FORK_BYTES,
    MAX_FORK_EVENTS, NewConversation, NewEvent, Page, PageRequest,
};
use crate::store::ConversationStore;

/// The size of settings after which a page of conversations ends.
const MAX_PAGE_BYTES: usize = 4 << 20;

#[async_trait]
impl ConversationStore for SqliteStore {
    async fn create_conversation(
        &self,
        new: NewConversation,
        fork: Option<Fork>,
        now: Timestamp,
    ) -> Result<Conversation> {
        self.write(move |db| {
            let copied = fork.map(|fork| events_of_fork(db, fork)).transpose()?.unwrap_or_default();
            let id = new.id;
            let key = create(db, new, now)?;
            append_events(db, key, copied)?;
            find_conversation(db, id, now)
        })
        .await
    }

    async fn update_conversation(
        &self,
        id: ConversationId,
        patch: ConversationPatch,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Conversation> {
        self.write(move |db| {
            let key = conversation_key(db, id)?;
            update(db, key, patch)?;
            apply(db, key, effects, now)?;
            find_conversation(db, id, now)
        })
        .await
    }

    async fn resume_conversation(&self, id: ConversationId, effects: Effects, now: Timestamp) -> Result<Conversation> {
        self.write(move |db| {
            let key = conversation_key(db, id)?;
            run(db, "UPDATE conversation SET paused_until = NULL WHERE key = ?1", [key])?;
            refresh_ready(db, key, now)?;
            apply(db, key, effects, now)?;
            find_conversation(db, id, now)
        })
        .await
    }

    async fn delete_conversation(&self, id: ConversationId, now: Timestamp) -> Result<()> {
        self.write(move |db| {
            let key = conversation_key(db, id)?;
            let sql = "DELETE FROM conversation WHERE key = ?1 AND (lease_until IS NULL OR lease_until <= ?2)";
            if run(db, sql, params![key, now])? == 0 {
                return Err(StoreError::ConversationBusy { conversation: id }.into());
            }
            run(db, "DELETE FROM delivery WHERE conversation = ?1", [id])?;
            Ok(())
        })
        .await
    }

    async fn conversation(&self, id: ConversationId, now: Timestamp) -> Result<Option<Conversation>> {
        self.read(move |db| {
            first(
                db,
                &format!("{CONVERSATIONS} WHERE id = :id"),
                named_params! { ":now": now, ":id": id },
                conversation,
            )
        })
        .await
    }

    async fn conversation_at(&self, address: ChatAddress, now: Timestamp) -> Result<Option<Conversation>> {
        self.read(move |db| {
            let ChatAddress { channel, chat, thread } = address;
            let sql = format!("{CONVERSATIONS} WHERE channel = :channel AND chat = :chat AND thread = :thread");
            let params = named_params! { ":now": now, ":channel": channel, ":chat": chat, ":thread": thread };
            first(db, &sql, params, conversation)
        })
        .await
    }

    async fn forget_sessions(&self, id: ConversationId, effects: Effects, now: Timestamp) -> Result<Conversation> {
        self.write(move |db| {
            let key = conversation_key(db, id)?;
            let sql = "SELECT 1 FROM conversation WHERE key = ?1 AND worker IS NOT NULL";
            if first(db, sql, [key], |_| Ok(()))?.is_some() {
                return Err(StoreError::ConversationBusy { conversation: id }.into());
            }
            run(db, "DELETE FROM session WHERE conversation = ?1", [key])?;
            run(db, "UPDATE conversation SET epoch = epoch + 1 WHERE key = ?1", [key])?;
            apply(db, key, effects, now)?;
            find_conversation(db, id, now)
        })
        .await
    }

    async fn conversations(
        &self,
        filter: ConversationFilter,
        request: PageRequest,
        now: Timestamp,
    ) -> Result<Page<Conversation>> {
        let limit = check_limit(request.limit)?;
        let before = key_of(request.cursor.as_ref())?;
        let is_search = filter.text.is_some();
        let query = move |db: &Connection| {
            let sql = format!(
                "{CONVERSATIONS} AS c WHERE (:before IS NULL OR key < :before) AND (:state IS NULL OR state = :state)
                    AND (:agent IS NULL OR agent = :agent) AND (:channel IS NULL OR channel = :channel)
                    AND (:text IS NULL OR instr(lower(title), lower(:text))
                        OR EXISTS (SELECT 1 FROM turn WHERE turn.conversation = c.key
                            AND instr(lower(turn.text), lower(:text))))
                ORDER BY key DESC LIMIT :limit"
            );
            let ConversationFilter { state, agent, channel, text } = filter;
            let params = named_params! {
                ":now": now, ":before": before, ":state": state, ":agent": agent, ":channel": channel, ":text": text,
                ":limit": limit.saturating_add(1),
            };
            let mut statement = db.prepare_cached(&sql)?;
            let mut found = statement.query(params)?;
            let (mut rows, mut size) = (Vec::new(), 0);
            while let Some(row) = found.next()? {
                let conversation = conversation(row)?;
                size += conversation.settings.as_str().len();
                rows.push((row.get("key")?, conversation));
                if size > MAX_PAGE_BYTES && rows.len() <= usize::try_from(limit).unwrap_or(usize::MAX) {
                    return Ok(cut_page(rows));
                }
            }
            Ok(page(rows, &request))
        };
        if is_search { self.search(query).await } else { self.read(query).await }
    }
}

/// Creates an empty conversation, and returns its key.
pub(super) fn create(db: &Connection, new: NewConversation, now: Timestamp) -> Outcome<i64> {
    let NewConversation { id, address, agent, title, settings } = new;
    if first(db, "SELECT 1 FROM conversation WHERE id = ?1", [id], |_| Ok(()))?.is_some() {
        return Err(StoreError::exists(Entity::Conversation, id).into());
    }
    let ChatAddress { channel, chat, thread } = address;
    let sql = "INSERT INTO conversation (id, channel, chat, thread, agent, title, settings, version, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8)
        ON CONFLICT (channel, chat, thread) DO NOTHING";
    if run(db, sql, params![id, channel, chat, thread, agent, title, settings, now])? == 0 {
        return Err(StoreError::exists(Entity::Conversation, format!("{channel}/{chat}/{thread}")).into());
    }
    Ok(db.last_insert_rowid())
}

fn update(db: &Connection, key: i64, patch: ConversationPatch) -> Outcome<()> {
    let ConversationPatch { agent, title, settings, expected_version } = patch;
    let current = super::query::value(db, "SELECT version FROM conversation WHERE key = ?1", [key])?;
    let current = unsigned(current);
    if expected_version.is_some_and(|expected| expected != current) {
        return Err(StoreError::VersionConflict { current }.into());
    }
    let changes = agent.is_some() || title.is_some() || settings.is_some();
    let sql = "UPDATE conversation SET agent = coalesce(:agent, agent), settings = coalesce(:settings, settings),
            title = CASE WHEN :set_title THEN :title ELSE title END, version = :version
        WHERE key = :key";
    let params = named_params! {
        ":agent": agent, ":settings": settings, ":set_title": title.is_some(), ":title": title.flatten(),
        ":version": integer(current.saturating_add(u64::from(changes))), ":key": key,
    };
    run(db, sql, params)?;
    Ok(())
}

fn events_of_fork(db: &Connection, fork: Fork) -> Outcome<Vec<NewEvent>> {
    let sql = "SELECT key, oldest_seq, last_seq FROM conversation WHERE id = ?1";
    let found = first(db, sql, [fork.from], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (key, oldest, last): (i64, Seq, Seq) =
        found.ok_or_else(|| StoreError::not_found(Entity::Conversation, fork.from))?;
    if oldest > Seq::new(1) {
        return Err(StoreError::EventsPruned { oldest }.into());
    }
    if fork.after > last {
        return Err(StoreError::Invalid { reason: "the fork is after the end of the log" }.into());
    }
    // The sizes are in the headers of the rows, so no text is read.
    let sql = "SELECT coalesce(sum(octet_length(body)), 0) FROM event WHERE conversation = ?1 AND seq <= ?2";
    let is_large = fork.after.get() > MAX_FORK_EVENTS
        || unsigned(super::query::value(db, sql, params![key, fork.after])?) > MAX_FORK_BYTES;
    if is_large {
        return Err(StoreError::Invalid { reason: TOO_LARGE_FORK }.into());
    }
    let sql = format!("SELECT {EVENT_COLUMNS} FROM event WHERE conversation = ?1 AND seq <= ?2 ORDER BY seq");
    all(db, &sql, params![key, fork.after], |row| {
        let Event { seq: _, kind, turn, at, body } = event(row)?;
        Ok(NewEvent { kind, turn, at, body })
    })
}
