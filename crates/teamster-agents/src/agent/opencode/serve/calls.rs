//! Our calls of the server: their paths and bodies, and what each one was made for.
//!
//! Invariant: nothing stands in a path that is not a name of letters, digits, `_` and `-`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::protocol::{Action, CallId, Method, ServerAction, ServerCall};
use teamster_types::event::SessionId;

/// What a call was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To know the directory that the server works in.
    Directory,
    /// To find the session that is to be gone on with, or forked.
    Found,
    /// To have a session: a new one, or a fork.
    Open,
    /// To find the newest session.
    Newest,
    /// To know how the MCP servers fare.
    Servers,
    Prompt,
    /// To say more within the turn.
    Steer,
    Abort,
    /// An answer to a request of the agent's.
    Answer,
}

/// Calls that are under way.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    waiting: BTreeMap<CallId, Purpose>,
}

impl Calls {
    pub(super) fn get(&mut self, purpose: Purpose, path: impl Into<String>) -> Action {
        self.call(purpose, Method::Get, path.into(), None)
    }

    pub(super) fn post(&mut self, purpose: Purpose, path: impl Into<String>, body: &Value) -> Action {
        self.call(purpose, Method::Post, path.into(), Some(body.to_string().into_bytes()))
    }

    /// What a call was made for; `None` if none of that number waits.
    pub(super) fn answered(&mut self, call: CallId) -> Option<Purpose> {
        self.waiting.remove(&call)
    }

    fn call(&mut self, purpose: Purpose, method: Method, path: String, body: Option<Vec<u8>>) -> Action {
        self.last += 1;
        let id = CallId(self.last);
        self.waiting.insert(id, purpose);
        Action::Server(ServerAction::Call(ServerCall { id, method, path, body }))
    }

    pub(super) fn new_session(&mut self) -> Action {
        // Without a title the model is asked for one, which no figure tells.
        self.post(Purpose::Open, "/session", &json!({ "title": "Teamster" }))
    }

    pub(super) fn session(&mut self, id: &SessionId) -> Action {
        self.get(Purpose::Found, format!("/session/{}", id.as_str()))
    }

    pub(super) fn fork(&mut self, id: &SessionId) -> Action {
        self.post(Purpose::Open, format!("/session/{}/fork", id.as_str()), &json!({}))
    }

    pub(super) fn prompt(&mut self, session: &SessionId, body: &Value) -> Action {
        self.post(Purpose::Prompt, format!("/session/{}/prompt_async", session.as_str()), body)
    }

    /// Says more within the turn; with the number by which the call is known.
    pub(super) fn steer(&mut self, session: &SessionId, body: &Value) -> (CallId, Action) {
        let action = self.post(Purpose::Steer, format!("/session/{}/prompt_async", session.as_str()), body);
        (CallId(self.last), action)
    }

    pub(super) fn abort(&mut self, session: &SessionId) -> Action {
        self.post(Purpose::Abort, format!("/session/{}/abort", session.as_str()), &json!({}))
    }

    pub(super) fn answer(&mut self, kind: &str, id: &str, body: &Value) -> Option<Action> {
        is_name(id).then(|| self.post(Purpose::Answer, format!("/{kind}/{id}/reply"), body))
    }
}

/// Whether this has the form of a session's id. The server refuses another form as a bad request (1.18.33).
pub(in super::super) fn is_session_id(text: &str) -> bool {
    text.starts_with("ses") && is_name(text)
}

/// Whether this can stand in a path and mean itself.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
