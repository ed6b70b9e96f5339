//! Collects the sessions that match a query.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use teamster_agents::agent::session_store::SessionRecord;

use super::stored::{SessionList, SessionQuery, SkippedPath, StoredSession};
use crate::stores::directory::Directory;

/// The sessions that were found so far.
pub(super) struct Found<'a> {
    query: &'a SessionQuery,
    pub(super) directory: Option<Directory>,
    agent: String,
    /// The sessions of the current agent, by their ids.
    current: BTreeMap<String, StoredSession>,
    list: SessionList,
}

impl<'a> Found<'a> {
    pub(super) fn new(query: &'a SessionQuery) -> Self {
        let directory = query.directory.as_deref().map(Directory::new);
        Self { query, directory, agent: String::new(), current: BTreeMap::new(), list: SessionList::default() }
    }

    pub(super) fn start_agent(&mut self, agent: &str) {
        agent.clone_into(&mut self.agent);
        self.list.sessions.extend(std::mem::take(&mut self.current).into_values());
    }

    /// Returns the number of sessions to read from one store. One more than the limit shows whether there are others.
    pub(super) fn max_sessions(&self) -> usize {
        self.query.limit.map_or(usize::MAX, |limit| limit.saturating_add(1))
    }

    pub(super) fn is_full(&self) -> bool {
        self.current.len() >= self.max_sessions()
    }

    pub(super) fn id_prefix(&self) -> &str {
        self.query.id_prefix.as_deref().unwrap_or_default()
    }

    pub(super) fn updated_after(&self) -> Option<SystemTime> {
        self.query.updated_after
    }

    /// Adds a session that matches the query.
    pub(super) fn add(&mut self, id: String, record: SessionRecord) {
        let is_there = match (&self.directory, &record.directory) {
            (Some(wanted), Some(directory)) => wanted.is(directory),
            (Some(_), None) => false,
            (None, _) => true,
        };
        let is_new = self.updated_after().is_none_or(|after| record.updated.is_some_and(|updated| updated > after));
        if !is_there || !is_new || !id.starts_with(self.id_prefix()) {
            return;
        }
        let new = StoredSession {
            title: record.title,
            directory: record.directory,
            model: record.model.map(Into::into),
            created_at: record.created,
            updated_at: record.updated,
            turns: record.turns,
            total_cost_usd: record.cost_usd,
            last_exchange: record.last_exchange,
            ..StoredSession::new(self.agent.clone(), id.clone())
        };
        // Several files of Gemini CLI may have the same id. All but one have no history.
        let most = self.current.remove(&id).into_iter().chain([new]).max_by_key(|session| session.turns);
        self.current.extend(most.map(|session| (id, session)));
    }

    pub(super) fn skip(&mut self, path: &Path, reason: impl std::fmt::Display) {
        let (agent, reason) = (self.agent.clone(), reason.to_string());
        self.list.skipped.push(SkippedPath { agent, path: path.to_owned(), reason });
    }

    pub(super) fn into_list(mut self) -> SessionList {
        self.start_agent("");
        let mut list = self.list;
        list.sessions.sort_by(|one, other| (other.updated_at, &other.id).cmp(&(one.updated_at, &one.id)));
        if let Some(limit) = self.query.limit {
            list.has_more = list.sessions.len() > limit;
            list.sessions.truncate(limit);
        }
        list
    }
}
