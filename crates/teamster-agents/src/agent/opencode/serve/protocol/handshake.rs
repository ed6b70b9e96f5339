//! The handshake: from the server's first line to a session whose events are read.

use std::collections::BTreeMap;

use super::super::super::error::NAME;
use super::super::super::session::{invalid_id, is_path_segment, not_found};
use super::super::super::wire::ErrorBody;
use super::super::super::{failure, logs};
use super::super::calls::Purpose;
use super::super::wire::{PathReply, ServerStatus, SessionInfo};
use super::{Actions, ServeProtocol, State};
use crate::agent::failure::Classification;
use crate::agent::line;
use crate::protocol::{Action, ServerAction};
use teamster_types::event::{ErrorCode, Failure, Init, SessionId};
use teamster_types::request::Conversation;

/// The start of the line with the server's address (1.18.33).
const ADDRESS_PREFIX: &str = "opencode server listening on ";

impl ServeProtocol {
    /// Handles a line of standard output: connects when it contains the server's address.
    pub(super) fn line(&mut self, text: &str, actions: &mut Actions) {
        let Some(address) = text.trim().strip_prefix(ADDRESS_PREFIX) else { return };
        if std::mem::replace(&mut self.handshake.is_connected, true) {
            return;
        }
        actions.push(Action::Alive);
        actions.push(Action::Server(ServerAction::Connect { address: address.to_owned() }));
        match invalid_id(&self.conversation) {
            Some(failure) => self.fail(Classification { failure, row: None }, actions),
            None => actions.push(self.calls.get(Purpose::Directory, "/path")),
        }
    }

    /// Handles the server's directory: requests the session.
    pub(super) fn directory_received(&mut self, body: &[u8], actions: &mut Actions) {
        let Some(PathReply { directory }) = read(body) else { return self.unreadable("its directory", actions) };
        self.handshake.directory = Some(directory);
        match &self.conversation {
            Conversation::Resume(id) | Conversation::Fork(id) => actions.push(self.calls.session(id)),
            Conversation::Continue | Conversation::ForkNewest => {
                actions.push(self.calls.get(Purpose::ListSessions, "/session?roots=true&limit=100"));
            }
            Conversation::New => {
                let call = self.calls.new_session();
                self.create_session(call, actions);
            }
        }
    }

    /// Creates a session when the first prompt is sent. A session without a prompt would become the user's newest session.
    fn create_session(&mut self, call: Action, actions: &mut Actions) {
        if self.turn.is_some() {
            actions.push(call);
        } else {
            self.handshake.deferred_call = Some(call);
        }
    }

    /// Handles the sessions of the project: continues or forks the newest one of this directory.
    pub(super) fn sessions_received(&mut self, body: &[u8], actions: &mut Actions) {
        let Some(sessions) = read::<Vec<SessionInfo>>(body) else { return self.unreadable("its sessions", actions) };
        let here = |session: &SessionInfo| session.parent.is_none() && session.directory == self.handshake.directory;
        if let Some(session) = sessions.into_iter().filter(here).max_by_key(|session| session.time.updated) {
            if self.conversation != Conversation::ForkNewest {
                return self.use_session(session, actions);
            }
            if !is_path_segment(&session.id) {
                return self.unreadable("a session", actions);
            }
            let call = self.calls.fork(&SessionId::from(session.id));
            return self.create_session(call, actions);
        }
        let call = self.calls.new_session();
        self.create_session(call, actions);
    }

    /// Handles the session to resume or fork.
    pub(super) fn session_found(&mut self, body: &[u8], actions: &mut Actions) {
        let Some(session) = read::<SessionInfo>(body) else { return self.unreadable("a session", actions) };
        if session.directory != self.handshake.directory {
            // The agent would work in the session's directory, and not in the requested one.
            let (id, theirs) = (session.id, session.directory.unwrap_or_default());
            let text = format!("session {id} belongs to the directory {theirs}: {NAME} resumes it only there");
            let failure = Failure::new(ErrorCode::SessionNotFound, text).with_retryable(false);
            return self.fail(Classification { failure, row: None }, actions);
        }
        if let Conversation::Fork(id) = &self.conversation {
            let call = self.calls.fork(id);
            return self.create_session(call, actions);
        }
        self.use_session(session, actions);
    }

    /// Handles a new session or fork.
    pub(super) fn session_created(&mut self, body: &[u8], actions: &mut Actions) {
        match read::<SessionInfo>(body) {
            Some(session) => self.use_session(session, actions),
            None => self.unreadable("a session", actions),
        }
    }

    /// Selects the session, and subscribes to its events. Earlier events are not of interest.
    fn use_session(&mut self, session: SessionInfo, actions: &mut Actions) {
        if !is_path_segment(&session.id) {
            return self.unreadable("a session", actions);
        }
        let mut init = Init::new(NAME, SessionId::from(session.id));
        if matches!(self.conversation, Conversation::New) {
            // An existing session has the version that created it.
            init.agent_version = session.version.map(Into::into);
        }
        init.cwd = session.directory.map(Into::into);
        self.init = Some(init);
        self.emit_init(actions);
        actions.push(Action::Server(ServerAction::Subscribe { path: "/event".to_owned() }));
        if self.has_mcp_servers {
            self.handshake.awaits_mcp_status = true;
            actions.push(self.calls.get(Purpose::McpStatus, "/mcp"));
        }
    }

    /// Handles the start of the event stream.
    pub(super) fn subscribed(&mut self, actions: &mut Actions) {
        self.handshake.is_subscribed = true;
        self.ready(actions);
    }

    /// Handles the status of the MCP servers. 1.18.33 starts them for this call.
    pub(super) fn mcp_status_received(&mut self, body: &[u8], actions: &mut Actions) {
        self.handshake.awaits_mcp_status = false;
        let servers: BTreeMap<String, ServerStatus> = read(body).unwrap_or_default();
        for (name, server) in servers {
            if !["failed", "needs_auth", "needs_client_registration"].contains(&server.status.as_str()) {
                continue;
            }
            let reason = logs::reason(&server.status);
            let reason = server.error.map_or_else(|| reason.to_owned(), |error| format!("{reason}: {error}"));
            if let Some(failure) = self.servers.failed(&name, &server.status, &reason, actions) {
                return self.fail(Classification { failure, row: None }, actions);
            }
        }
        self.ready(actions);
    }

    fn ready(&mut self, actions: &mut Actions) {
        let is_complete = self.handshake.is_subscribed && !self.handshake.awaits_mcp_status;
        if matches!(self.state, State::Connecting) && is_complete {
            self.state = State::Ready;
            self.send_prompt(actions);
        }
    }

    /// Handles a failed call of the handshake, or a rejected prompt.
    pub(super) fn call_failed(&mut self, purpose: Purpose, status: u16, body: &[u8], actions: &mut Actions) {
        let classification = match (purpose, &self.conversation) {
            (Purpose::FindSession, Conversation::Resume(id) | Conversation::Fork(id)) if status == 404 => {
                Classification { failure: not_found(id), row: None }
            }
            _ => match read::<ErrorBody>(body) {
                Some(error) if !error.name.is_empty() => failure::of_error(&error, &self.log_errors.text()),
                _ => {
                    let text = format!("the CLI's server responded with status {status}");
                    Classification { failure: Failure::new(ErrorCode::Protocol, text), row: None }
                }
            },
        };
        self.fail(classification, actions);
    }

    fn unreadable(&mut self, what: &str, actions: &mut Actions) {
        let text = format!("the CLI's server reported {what} in an unknown format");
        let failure = Failure::new(ErrorCode::Protocol, text);
        self.fail(Classification { failure, row: None }, actions);
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Option<T> {
    line::with_json(body, |text| serde_json::from_str(text)).ok()
}
