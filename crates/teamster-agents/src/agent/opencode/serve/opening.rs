//! From the server's first line to a session whose events are read.

use std::collections::BTreeMap;

use super::super::wire::ErrorBody;
use super::super::{NAME, failure};
use super::calls::{Purpose, is_name, is_session_id};
use super::stream::{Actions, State, Stream};
use super::wire::{Place, ServerStatus, SessionInfo};
use crate::agent::failure::Classification;
use crate::agent::line;
use crate::protocol::{Action, ServerAction};
use teamster_types::event::{ErrorCode, Failure, Init, SessionId};
use teamster_types::request::Conversation;

/// How the server says where it is (1.18.33).
const LISTENS: &str = "opencode server listening on ";

/// How far the way to a session is.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// The server has said where it is.
    connected: bool,
    /// The directory that the server works in.
    directory: Option<String>,
    /// The call that makes the session, until there is something to say in it.
    pub(super) held: Option<Action>,
    /// The stream of events has begun.
    listens: bool,
    /// The MCP servers have been asked for, and not told yet.
    awaits_servers: bool,
}

impl Stream {
    /// A line of the CLI's own.
    pub(super) fn line(&mut self, text: &str, actions: &mut Actions) {
        let Some(address) = text.trim().strip_prefix(LISTENS) else { return };
        if std::mem::replace(&mut self.opening.connected, true) {
            return;
        }
        actions.push(Action::Alive);
        actions.push(Action::Server(ServerAction::Connect { address: address.to_owned() }));
        match &self.conversation {
            Conversation::Resume(id) | Conversation::Fork(id) if !is_session_id(id.as_str()) => {
                let failure = not_found(id);
                self.fail(Classification { failure, row: None }, actions);
            }
            _ => actions.push(self.calls.get(Purpose::Directory, "/path")),
        }
    }

    /// The server works in this directory.
    pub(super) fn place(&mut self, body: &[u8], actions: &mut Actions) {
        let Some(Place { directory }) = read(body) else { return self.unreadable("its directory", actions) };
        self.opening.directory = Some(directory);
        match &self.conversation {
            Conversation::Resume(id) | Conversation::Fork(id) => actions.push(self.calls.session(id)),
            Conversation::Continue => actions.push(self.calls.get(Purpose::Newest, "/session?roots=true&limit=100")),
            Conversation::New => {
                let call = self.calls.new_session();
                self.make(call, actions);
            }
        }
    }

    /// Makes a session, but not before something is to be said in it: one that stays empty would be the user's newest.
    fn make(&mut self, call: Action, actions: &mut Actions) {
        if self.turn.is_some() {
            actions.push(call);
        } else {
            self.opening.held = Some(call);
        }
    }

    /// The sessions of the project: the newest one of this directory is gone on with.
    pub(super) fn newest(&mut self, body: &[u8], actions: &mut Actions) {
        let Some(sessions) = read::<Vec<SessionInfo>>(body) else { return self.unreadable("its sessions", actions) };
        let here = |session: &SessionInfo| session.parent.is_none() && session.directory == self.opening.directory;
        if let Some(session) = sessions.into_iter().filter(here).max_by_key(|session| session.time.updated) {
            return self.has_session(session, actions);
        }
        let call = self.calls.new_session();
        self.make(call, actions);
    }

    /// The session that is to be gone on with, or forked.
    pub(super) fn found(&mut self, body: &[u8], actions: &mut Actions) {
        let Some(session) = read::<SessionInfo>(body) else { return self.unreadable("a session", actions) };
        if session.directory != self.opening.directory {
            // The agent would work there, whatever directory it was asked to work in.
            let (id, theirs) = (session.id, session.directory.unwrap_or_default());
            let text = format!("session {id} belongs to the directory {theirs}: {NAME} goes on with it there only");
            let failure = Failure { retryable: Some(false), ..Failure::new(ErrorCode::SessionNotFound, text) };
            return self.fail(Classification { failure, row: None }, actions);
        }
        if let Conversation::Fork(id) = &self.conversation {
            let call = self.calls.fork(id);
            return self.make(call, actions);
        }
        self.has_session(session, actions);
    }

    /// A session was made.
    pub(super) fn opened(&mut self, body: &[u8], actions: &mut Actions) {
        match read::<SessionInfo>(body) {
            Some(session) => self.has_session(session, actions),
            None => self.unreadable("a session", actions),
        }
    }

    /// This is the one. What it said before is no news, so that its events are read from here on.
    fn has_session(&mut self, session: SessionInfo, actions: &mut Actions) {
        if !is_name(&session.id) {
            return self.unreadable("a session", actions);
        }
        let mut init = Init::new(NAME, SessionId::from(session.id));
        if matches!(self.conversation, Conversation::New) {
            // Of an older one it is the version that made it.
            init.agent_version = session.version.map(Into::into);
        }
        init.cwd = session.directory.map(Into::into);
        self.init = Some(init);
        self.say_hello(actions);
        actions.push(Action::Server(ServerAction::Subscribe { path: "/event".to_owned() }));
        if self.has_servers {
            self.opening.awaits_servers = true;
            actions.push(self.calls.get(Purpose::Servers, "/mcp"));
        }
    }

    /// The stream of events has begun.
    pub(super) fn listens(&mut self, actions: &mut Actions) {
        self.opening.listens = true;
        self.ready(actions);
    }

    /// How the MCP servers fare. 1.18.33 starts them for this.
    pub(super) fn servers(&mut self, body: &[u8], actions: &mut Actions) {
        self.opening.awaits_servers = false;
        let servers: BTreeMap<String, ServerStatus> = read(body).unwrap_or_default();
        for (name, server) in servers {
            if !["failed", "needs_auth", "needs_client_registration"].contains(&server.status.as_str()) {
                continue;
            }
            let reason = super::super::logs::reason(&server.status);
            let reason = server.error.map_or_else(|| reason.to_owned(), |error| format!("{reason}: {error}"));
            if let Some(failure) = self.health.failed(&name, &server.status, &reason, actions) {
                return self.fail(Classification { failure, row: None }, actions);
            }
        }
        self.ready(actions);
    }

    fn ready(&mut self, actions: &mut Actions) {
        if matches!(self.state, State::Opening) && self.opening.listens && !self.opening.awaits_servers {
            self.state = State::Ready;
            self.send_waiting(actions);
        }
    }

    /// A call of the opening, or a prompt, was refused.
    pub(super) fn refused(&mut self, purpose: Purpose, status: u16, body: &[u8], actions: &mut Actions) {
        let judgement = match (purpose, &self.conversation) {
            (Purpose::Found, Conversation::Resume(id) | Conversation::Fork(id)) if status == 404 => {
                Classification { failure: not_found(id), row: None }
            }
            _ => match read::<ErrorBody>(body) {
                Some(error) if !error.name.is_empty() => failure::of_error(&error, &self.logs.text()),
                _ => {
                    let text = format!("the CLI's server answered with status {status}");
                    Classification { failure: Failure::new(ErrorCode::Protocol, text), row: None }
                }
            },
        };
        self.fail(judgement, actions);
    }

    fn unreadable(&mut self, what: &str, actions: &mut Actions) {
        let failure =
            Failure::new(ErrorCode::Protocol, format!("the CLI's server told {what} in no form that we know"));
        self.fail(Classification { failure, row: None }, actions);
    }
}

/// There is no such session.
pub(in super::super) fn not_found(id: &SessionId) -> Failure {
    let failure = Failure::new(ErrorCode::SessionNotFound, format!("Session not found: {}", id.as_str()));
    Failure { retryable: Some(false), ..failure }
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Option<T> {
    line::with_json(body, |text| serde_json::from_str(text)).ok()
}
