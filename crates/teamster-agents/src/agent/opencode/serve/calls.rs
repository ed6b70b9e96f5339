//! Our calls of the server: their paths, their bodies and their purposes.
//!
//! Invariant: the variable segments of a path contain only letters, digits, `_` and `-`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::session::is_path_segment;
use crate::protocol::{Action, CallId, Method, ServerAction, ServerCall};
use teamster_types::event::SessionId;

/// The purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads the server's working directory.
    Directory,
    /// Reads the session to resume or fork.
    FindSession,
    /// Creates a session: a new one, or a fork.
    CreateSession,
    /// Lists the sessions, to find the newest one.
    ListSessions,
    /// Reads the status of the MCP servers.
    McpStatus,
    Prompt,
    /// Sends a prompt within the turn.
    Steer,
    Abort,
    /// Answers a request of the agent.
    Answer,
}

/// The calls in progress.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    pending: BTreeMap<CallId, Purpose>,
}

impl Calls {
    pub(super) fn get(&mut self, purpose: Purpose, path: impl Into<String>) -> Action {
        self.call(purpose, Method::Get, path.into(), None)
    }

    pub(super) fn post(&mut self, purpose: Purpose, path: impl Into<String>, body: &Value) -> Action {
        self.call(purpose, Method::Post, path.into(), Some(body.to_string().into_bytes()))
    }

    /// Removes a call that has a reply, and returns its purpose; `None` if it is not in progress.
    pub(super) fn complete(&mut self, call: CallId) -> Option<Purpose> {
        self.pending.remove(&call)
    }

    fn call(&mut self, purpose: Purpose, method: Method, path: String, body: Option<Vec<u8>>) -> Action {
        self.last += 1;
        let id = CallId(self.last);
        self.pending.insert(id, purpose);
        Action::Server(ServerAction::Call(ServerCall { id, method, path, body }))
    }

    pub(super) fn new_session(&mut self) -> Action {
        // A session without a title requests one from the model. No usage figure includes that call.
        self.post(Purpose::CreateSession, "/session", &json!({ "title": "Teamster" }))
    }

    pub(super) fn session(&mut self, id: &SessionId) -> Action {
        self.get(Purpose::FindSession, format!("/session/{}", id.as_str()))
    }

    pub(super) fn fork(&mut self, id: &SessionId) -> Action {
        self.post(Purpose::CreateSession, format!("/session/{}/fork", id.as_str()), &json!({}))
    }

    pub(super) fn prompt(&mut self, session: &SessionId, body: &Value) -> Action {
        self.post(Purpose::Prompt, format!("/session/{}/prompt_async", session.as_str()), body)
    }

    /// Sends a prompt within the turn. Also returns the id of the call.
    pub(super) fn steer(&mut self, session: &SessionId, body: &Value) -> (CallId, Action) {
        let action = self.post(Purpose::Steer, format!("/session/{}/prompt_async", session.as_str()), body);
        (CallId(self.last), action)
    }

    pub(super) fn abort(&mut self, session: &SessionId) -> Action {
        self.post(Purpose::Abort, format!("/session/{}/abort", session.as_str()), &json!({}))
    }

    pub(super) fn answer(&mut self, kind: &str, id: &str, body: &Value) -> Option<Action> {
        is_path_segment(id).then(|| self.post(Purpose::Answer, format!("/{kind}/{id}/reply"), body))
    }
}
