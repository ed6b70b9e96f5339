//! The sessions that the agents' CLIs store, whoever started them. The stores are only read, never changed.
//!
//! ```no_run
//! use teamster::Runtime;
//! use teamster::sessions::SessionQuery;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut query = SessionQuery::default();
//! query.directory = Some(std::env::current_dir()?);
//! for session in Runtime::new().sessions(&query)?.sessions {
//!     println!("{} {}", session.agent, session.id);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`files`]: stores with one file for each session; [`database`]: stores in a database.
//!
//! Invariants: no file of a store is changed or created; a file that cannot be read hides no other session; time and memory
//! are bounded, whatever the files contain.

mod database;
mod directory;
mod files;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use teamster_agents::agent::SessionStore;
use teamster_agents::agent::session_store::SessionRecord;
use teamster_types::event::SessionId;
use teamster_types::text::UntrustedText;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub use teamster_agents::agent::session_store::Exchange;

use self::directory::Directory;
use crate::registry::UnknownAgent;
use crate::runtime::Runtime;

/// Which sessions are listed. The default lists all sessions of all agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionQuery {
    /// Only sessions of these agents. An empty list means all agents.
    pub agents: Vec<String>,
    /// Only sessions of this working directory.
    pub directory: Option<PathBuf>,
    /// Only sessions whose id begins with this text.
    pub id_prefix: Option<String>,
    /// At most this many sessions.
    pub limit: Option<usize>,
}

/// The sessions that match a query.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionList {
    /// The sessions, the newest first.
    pub sessions: Vec<StoredSession>,
    /// Whether the query's limit excluded others.
    pub has_more: bool,
    /// The files and directories that could not be read.
    pub skipped: Vec<SkippedPath>,
}

/// A session that an agent's CLI stores.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoredSession {
    /// The agent.
    pub agent: String,
    /// The id, which resumes the session.
    pub id: SessionId,
    /// The title: the person's, the agent's, or the start of the first prompt.
    pub title: Option<UntrustedText>,
    /// The working directory.
    pub directory: Option<PathBuf>,
    /// The model of the last answer.
    pub model: Option<UntrustedText>,
    /// When the session was created. RFC 3339 in JSON.
    #[serde(serialize_with = "rfc3339")]
    pub created_at: Option<SystemTime>,
    /// When it was last changed. RFC 3339 in JSON.
    #[serde(serialize_with = "rfc3339")]
    pub updated_at: Option<SystemTime>,
    /// The number of prompts, if it is known.
    pub turns: Option<u64>,
    /// The cost in US dollars, if the agent stores it.
    pub total_cost_usd: Option<f64>,
    /// The last prompt and its answer. They are not part of the JSON.
    #[serde(skip)]
    pub last_exchange: Exchange,
}

impl StoredSession {
    /// Returns a session of which only the agent and the id are known.
    pub fn new(agent: impl Into<String>, id: impl Into<SessionId>) -> Self {
        Self {
            agent: agent.into(),
            id: id.into(),
            title: None,
            directory: None,
            model: None,
            created_at: None,
            updated_at: None,
            turns: None,
            total_cost_usd: None,
            last_exchange: Exchange::default(),
        }
    }
}

/// A file or directory of a store that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SkippedPath {
    /// The agent.
    pub agent: String,
    /// The path. In JSON, invalid UTF-8 is replaced by U+FFFD.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Why it could not be read.
    pub reason: String,
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn rfc3339<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = time.and_then(|time| OffsetDateTime::from(time).format(&Rfc3339).ok());
    text.serialize(serializer)
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl Runtime {
    /// Lists the sessions that the agents' CLIs store. It reads files, so it blocks.
    ///
    /// The stores are found by the environment of the runtime: `HOME`, and the variables of each CLI. An agent whose store is
    /// unknown has no sessions here. A file that cannot be read, or that is no session, is in [`SessionList::skipped`].
    ///
    /// # Errors
    /// The query names an unknown agent.
    pub fn sessions(&self, query: &SessionQuery) -> Result<SessionList, UnknownAgent> {
        let registry = self.registry();
        let names: Vec<&str> = match &query.agents[..] {
            [] => registry.names().collect(),
            named => named.iter().map(String::as_str).collect(),
        };
        let variable = |name: &str| -> Option<OsString> {
            self.environment().get(OsStr::new(name)).filter(|value| !value.is_empty()).cloned()
        };
        let mut found = Found::new(query);
        for name in names {
            let agent = registry.get(name)?;
            found.start_agent(agent.name());
            match agent.session_store() {
                Some(SessionStore::Files(store)) => files::read(store, &variable, &mut found),
                Some(SessionStore::Database(store)) => database::read(store, &variable, &mut found),
                None => {}
            }
        }
        Ok(found.into_list())
    }
}

/// The sessions that were found so far.
struct Found<'a> {
    query: &'a SessionQuery,
    directory: Option<Directory>,
    agent: String,
    /// The sessions of the current agent, by their ids.
    current: BTreeMap<String, StoredSession>,
    list: SessionList,
}

impl<'a> Found<'a> {
    fn new(query: &'a SessionQuery) -> Self {
        let directory = query.directory.as_deref().map(Directory::new);
        Self { query, directory, agent: String::new(), current: BTreeMap::new(), list: SessionList::default() }
    }

    fn start_agent(&mut self, agent: &str) {
        agent.clone_into(&mut self.agent);
        self.list.sessions.extend(std::mem::take(&mut self.current).into_values());
    }

    /// Returns the number of sessions to read from one store. One more than the limit shows whether there are others.
    fn max_sessions(&self) -> usize {
        self.query.limit.map_or(usize::MAX, |limit| limit.saturating_add(1))
    }

    fn is_full(&self) -> bool {
        self.current.len() >= self.max_sessions()
    }

    fn id_prefix(&self) -> &str {
        self.query.id_prefix.as_deref().unwrap_or_default()
    }

    /// Adds a session that matches the query.
    fn add(&mut self, id: String, record: SessionRecord) {
        let is_there = match (&self.directory, &record.directory) {
            (Some(wanted), Some(directory)) => wanted.is(directory),
            (Some(_), None) => false,
            (None, _) => true,
        };
        if !is_there || !id.starts_with(self.id_prefix()) {
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

    fn skip(&mut self, path: &Path, reason: impl std::fmt::Display) {
        let (agent, reason) = (self.agent.clone(), reason.to_string());
        self.list.skipped.push(SkippedPath { agent, path: path.to_owned(), reason });
    }

    fn into_list(mut self) -> SessionList {
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
