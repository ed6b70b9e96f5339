//! The conversation that a request means, by the store of its agent.
//!
//! An agent continues a conversation only in the directory in which it was started, whatever the CLI would do: another directory
//! would move the work, and the files that the agent may write, without anyone having asked for it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use teamster_agents::agent::{Agent, SessionStore};
use teamster_types::event::{ErrorCode, Failure, SessionId};
use teamster_types::request::{Conversation, RunRequest};

use crate::setup::environment::Environment;
use crate::stores::directory::Directory;
use crate::stores::lookup::{self, Found};
use crate::stores::search::Filter;

/// Replaces "the newest conversation" in a request by its id. Returns the failure if the conversation belongs to another
/// directory than the request's. If the store of the agent is unknown, the agent decides.
pub(super) fn resolve(
    agent: &dyn Agent,
    environment: &Environment,
    request: &mut RunRequest,
    cwd: &Path,
) -> Option<Failure> {
    if request.conversation == Conversation::New {
        return None;
    }
    let store = agent.session_store()?;
    let variables = |name: &str| variable(environment, request, name);
    if !lookup::is_readable(store, &variables) {
        return None;
    }
    let directory = Directory::new(cwd);
    match &request.conversation {
        Conversation::Resume(id) | Conversation::Fork(id) => {
            let found = find(store, &variables, id)?;
            let stored = found.directory.filter(|stored| !directory.is_reached_by(stored))?;
            Some(other_directory(&found.id, &stored))
        }
        newest => {
            let filter = Filter { directory: Some(&directory), ..Filter::default() };
            let found = lookup::newest(store, &variables, filter).map(|found| SessionId::from(found.id));
            request.conversation = match (found, newest) {
                (None, _) => Conversation::New,
                (Some(id), Conversation::ForkNewest) => Conversation::Fork(id),
                (Some(id), _) => Conversation::Resume(id),
            };
            None
        }
    }
}

/// Returns a variable of the agent's process. An empty one counts as not set.
fn variable(environment: &Environment, request: &RunRequest, name: &str) -> Option<OsString> {
    let own = request.env.get(name).map(OsString::from);
    own.or_else(|| environment.get(OsStr::new(name)).cloned()).filter(|value| !value.is_empty())
}

/// Finds a session. An agent whose ids are UUIDs accepts them in upper case too.
fn find(store: SessionStore, variables: &dyn Fn(&str) -> Option<OsString>, id: &SessionId) -> Option<Found> {
    let lower = id.as_str().to_ascii_lowercase();
    let found = lookup::find(store, variables, id.as_str());
    found.or_else(|| if lower == id.as_str() { None } else { lookup::find(store, variables, &lower) })
}

/// Returns the failure of a conversation in another directory than its own.
fn other_directory(id: &str, directory: &Path) -> Failure {
    let is_gone = if directory.is_dir() { "" } else { ", which no longer exists" };
    let text = format!(
        "session {id} belongs to the directory {}{is_gone}; it can be resumed and forked only there",
        directory.display()
    );
    Failure::new(ErrorCode::SessionNotFound, text).with_retryable(false)
}
