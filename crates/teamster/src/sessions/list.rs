//! Lists sessions.

use std::ffi::{OsStr, OsString};

use teamster_agents::agent::SessionStore;

use super::files;
use super::found::Found;
use super::stored::{SessionList, SessionQuery, StoredSession};
use crate::registry::UnknownAgent;
use crate::runtime::Runtime;
use crate::stores::database::{self, Wanted};
use crate::stores::lookup;
use crate::stores::search::Filter;

impl Runtime {
    /// Lists the sessions that the agents' CLIs store. It reads files, so it blocks.
    ///
    /// The stores are found by the environment of the runtime: `HOME`, and the variables of each CLI. An agent whose store is
    /// unknown has no sessions here. A file that cannot be read, or that is no session, is in [`SessionList::skipped`].
    ///
    /// # Errors
    /// The query names an unknown agent.
    pub fn sessions(&self, query: &SessionQuery) -> Result<SessionList, UnknownAgent> {
        let variable = |name: &str| self.store_variable(name);
        let mut found = Found::new(query);
        for name in self.queried(query) {
            let agent = self.registry().get(name)?;
            found.start_agent(agent.name());
            match agent.session_store() {
                Some(SessionStore::Files(store)) => files::read(store, &variable, &mut found),
                Some(SessionStore::Database(store)) => {
                    let wanted = Wanted {
                        directory: found.directory.as_ref(),
                        id_prefix: found.id_prefix(),
                        limit: found.max_sessions(),
                        with_exchange: true,
                    };
                    let rows = database::read(store, &variable, wanted);
                    rows.sessions.into_iter().for_each(|(id, record)| found.add(id, record));
                    if let Some((path, reason)) = rows.skipped {
                        found.skip(&path, reason);
                    }
                }
                None => {}
            }
        }
        Ok(found.into_list())
    }

    /// Returns the session that was used last, of those that match the query. It reads the start and the end of few files, so it
    /// is fast with thousands of sessions. Only the agent, the id, the directory and the time of the last change are set. The
    /// query's limit has no effect.
    ///
    /// # Errors
    /// The query names an unknown agent.
    pub fn newest_session(&self, query: &SessionQuery) -> Result<Option<StoredSession>, UnknownAgent> {
        let directory = query.directory.as_deref().map(crate::stores::directory::Directory::new);
        let mut newest: Option<StoredSession> = None;
        for name in self.queried(query) {
            let agent = self.registry().get(name)?;
            let Some(store) = agent.session_store() else { continue };
            let filter = Filter {
                directory: directory.as_ref(),
                id_prefix: query.id_prefix.as_deref().unwrap_or_default(),
                changed_after: newest.as_ref().and_then(|session| session.updated_at).max(query.updated_after),
            };
            if let Some(found) = lookup::newest(store, &|name| self.store_variable(name), filter) {
                let session = StoredSession::new(agent.name(), found.id);
                newest = Some(StoredSession { directory: found.directory, updated_at: found.updated, ..session });
            }
        }
        Ok(newest)
    }

    /// Returns the names of the agents of a query.
    fn queried<'a>(&'a self, query: &'a SessionQuery) -> Vec<&'a str> {
        match &query.agents[..] {
            [] => self.registry().names().collect(),
            named => named.iter().map(String::as_str).collect(),
        }
    }

    fn store_variable(&self, name: &str) -> Option<OsString> {
        self.environment().get(OsStr::new(name)).filter(|value| !value.is_empty()).cloned()
    }
}
