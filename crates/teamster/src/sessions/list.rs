//! Lists sessions.

use std::ffi::{OsStr, OsString};

use teamster_agents::agent::SessionStore;

use super::found::Found;
use super::stored::{SessionList, SessionQuery};
use super::{database, files};
use crate::registry::UnknownAgent;
use crate::runtime::Runtime;

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
