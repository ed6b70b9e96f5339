//! How a session is opened: what the agent is asked for, and why there is none.

use serde_json::Value;

use super::turns::failed_turn;
use super::{Actions, Client, Phase, Purpose, Session, warning};
use crate::agent::acp::settings::Settings;
use crate::agent::acp::wire::{AuthMethod, McpCapabilities, Opened, Welcome};
use crate::agent::acp::{ask, failure};
use crate::agent::rpc::RpcError;
use crate::protocol::Outcome;
use teamster_types::event::{ErrorCode, Failure, SessionId, WarningCode};
use teamster_types::request::Conversation;

impl Client {
    pub(super) fn welcomed(&mut self, welcome: Welcome, actions: &mut Actions) {
        let Welcome { protocol_version, agent_capabilities: can, agent_info, auth_methods } = welcome;
        (self.agent, self.auth_methods) = (agent_info, auth_methods);
        self.prompt_capabilities = can.prompt_capabilities;
        if protocol_version != ask::VERSION {
            let text =
                format!("the agent speaks version {protocol_version} of ACP, and Teamster version {}", ask::VERSION);
            return self.refuse(Failure::new(ErrorCode::Protocol, text), actions);
        }
        let servers = match self.servers(&can.mcp_capabilities) {
            Ok(servers) => servers,
            Err(why) => return self.refuse(Failure::new(ErrorCode::InvalidRequest, why), actions),
        };
        let sessions = can.session_capabilities;
        self.resumes = sessions.resume.is_some() || can.load_session;
        let (method, old) = match &self.wishes.conversation {
            Conversation::Resume(id) if sessions.resume.is_some() => ("session/resume", Some(id.clone())),
            Conversation::Resume(id) if can.load_session => ("session/load", Some(id.clone())),
            Conversation::Fork(id) if sessions.fork.is_some() => ("session/fork", Some(id.clone())),
            Conversation::Resume(id) | Conversation::Fork(id) => {
                let text = format!(
                    "the agent cannot go on with a session like this (asked for {}): it does not offer to",
                    id.as_str()
                );
                return self.refuse(Failure::new(ErrorCode::InvalidRequest, text), actions);
            }
            Conversation::New | Conversation::Continue => ("session/new", None),
        };
        let wire = old.as_ref().map(|id| self.dialect.old_session(id.as_str()));
        let params = ask::session(&self.wishes.cwd, &servers, wire.as_deref());
        self.call(Purpose::Open { old }, method, &params, actions);
    }

    fn servers(&self, can: &McpCapabilities) -> Result<Vec<Value>, String> {
        self.wishes.servers.iter().map(|(name, server)| ask::mcp_server(name, server, can)).collect()
    }

    pub(super) fn opened(&mut self, old: Option<SessionId>, opened: Opened, actions: &mut Actions) {
        let is_fork = matches!(self.wishes.conversation, Conversation::Fork(_));
        let (wire, id) = match (opened.session_id.clone(), old) {
            (Some(wire), Some(old)) if !is_fork && wire.trim() != old.as_str() => {
                let message = format!("asked to resume session {}, but {wire} answers", old.as_str());
                actions.push(warning(WarningCode::SessionMismatch, message.clone()));
                return self.refuse(Failure::new(ErrorCode::Protocol, message), actions);
            }
            (Some(wire), None) => (wire.clone(), SessionId::from(wire.as_str())),
            (Some(wire), Some(_)) if is_fork => (wire.clone(), SessionId::from(wire.as_str())),
            (_, Some(old)) if !is_fork => (self.dialect.old_session(old.as_str()), old),
            _ => {
                let text = "the agent opened a session and did not say which";
                return self.refuse(Failure::new(ErrorCode::Protocol, text), actions);
            }
        };
        let replays = !matches!(self.wishes.conversation, Conversation::New) && self.dialect.replays_late();
        let fence = opened.modes.as_ref().map(|modes| modes.current_mode_id.clone()).filter(|_| replays);
        self.settings = Settings::new(opened);
        self.phase = Phase::Open(Session { wire, id });
        if let Some(mode) = fence {
            // It changes nothing: what is answered to it stands behind everything that is replayed.
            self.set(Purpose::Fence, ("session/set_mode", serde_json::json!({"modeId": mode})), actions);
        }
        if self.dialect.is_set_at_start() {
            return;
        }
        let mode = self.settings.set_mode(self.wishes.mode);
        let model = self.wishes.model.clone().map(|model| self.settings.set_model(&model));
        let effort = self.wishes.effort.clone().map(|effort| self.settings.set_effort(&effort));
        for (what, wish) in [("the permission mode", mode.transpose()), ("the model", model), ("the effort", effort)] {
            match wish {
                Some(Ok(setting)) => self.set(Purpose::Set(what), setting, actions),
                Some(Err(why)) => return self.refuse(Failure::new(ErrorCode::InvalidRequest, why), actions),
                None => {}
            }
        }
    }

    /// There is no session, or none that may be spoken to.
    pub(super) fn refuse(&mut self, failure: Failure, actions: &mut Actions) {
        self.refuse_with(failed_turn(failure), actions);
    }

    pub(super) fn refuse_for(&mut self, what: &str, error: &RpcError, actions: &mut Actions) {
        let mut judgement = failure::of_answer(what, error);
        if error.code == failure::AUTH_REQUIRED {
            judgement.failure.message.push_str(&self.ways_to_log_in());
        }
        self.refuse_with(judgement.into(), actions);
    }

    pub(super) fn refuse_with(&mut self, outcome: Outcome, actions: &mut Actions) {
        if !matches!(self.phase, Phase::Refused(_)) {
            self.phase = Phase::Refused(Box::new(outcome));
        }
        self.go_on(actions);
    }

    /// We never log in by ourselves: that would choose for the user, and some agents write it down.
    pub(super) fn ways_to_log_in(&self) -> String {
        let way = |method: &AuthMethod| match &method.description {
            Some(text) if *text != method.name => format!("{} ({text})", method.name),
            _ => method.name.clone(),
        };
        let ways: Vec<_> = self.auth_methods.iter().map(way).collect();
        if ways.is_empty() {
            return "; log in with the agent's own CLI".to_owned();
        }
        format!("; log in with the agent's own CLI, or set its key. It offers: {}", ways.join(", "))
    }
}
