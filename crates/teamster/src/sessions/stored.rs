//! A query of sessions, and its result.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use teamster_agents::agent::session_store::Exchange;
use teamster_types::event::SessionId;
use teamster_types::text::UntrustedText;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Which sessions are listed. The default lists all sessions of all agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionQuery {
    /// Only sessions of these agents. An empty list means all agents.
    pub agents: Vec<String>,
    /// Only sessions of this working directory.
    pub directory: Option<PathBuf>,
    /// Only sessions whose id starts with this text.
    pub id_prefix: Option<String>,
    /// Only sessions that were changed after this time.
    pub updated_after: Option<SystemTime>,
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
    /// Returns a session with its agent and its id. Everything else is unknown.
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
