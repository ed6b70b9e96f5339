//! Opens the session: the calls for it, and the failures.

use serde_json::Value;

use super::quiet::Wait;
use super::turn::failed_turn;
use super::{Actions, Client, Phase, Purpose, Session, warning};
use crate::agent::acp::settings::Settings;
use crate::agent::acp::wire::{AuthMethod, InitializeResult, McpCapabilities, Opened};
use crate::agent::acp::{failure, params};
use crate::agent::rpc::RpcError;
use crate::protocol::Outcome;
use teamster_types::event::{ErrorCode, Failure, SessionId, WarningCode};
use teamster_types::request::Conversation;
use teamster_types::text::UntrustedText;

impl Client {
    pub(super) fn initialized(&mut self, result: InitializeResult, actions: &mut Actions) {
        let InitializeResult { protocol_version, agent_capabilities: can, agent_info, auth_methods } = result;
        (self.agent, self.auth_methods) = (agent_info, auth_methods);
        self.prompt_capabilities = can.prompt_capabilities;
        if protocol_version != params::VERSION {
            let text = format!(
                "the agent supports version {protocol_version} of ACP, and Teamster version {}",
                params::VERSION
            );
            return self.fail_session(Failure::new(ErrorCode::Protocol, text), actions);
        }
        let servers = match self.servers(&can.mcp_capabilities) {
            Ok(servers) => servers,
            Err(why) => return self.fail_session(Failure::new(ErrorCode::InvalidRequest, why), actions),
        };
        let sessions = can.session_capabilities;
        self.resumes = sessions.resume.is_some() || can.load_session;
        let (method, old) = match &self.options.conversation {
            Conversation::Resume(id) if sessions.resume.is_some() => ("session/resume", Some(id.clone())),
            Conversation::Resume(id) if can.load_session => ("session/load", Some(id.clone())),
            Conversation::Fork(id) if sessions.fork.is_some() => ("session/fork", Some(id.clone())),
            Conversation::Resume(id) | Conversation::Fork(id) => {
                let is_fork = matches!(self.options.conversation, Conversation::Fork(_));
                let action = if is_fork { "forking" } else { "resuming" };
                let text = format!("the agent does not support {action} sessions (requested: {})", id.as_str());
                return self.fail_session(Failure::new(ErrorCode::InvalidRequest, text), actions);
            }
            Conversation::New | Conversation::Continue | Conversation::ForkNewest => ("session/new", None),
        };
        self.loads_session = method == "session/load";
        let wire_id = old.as_ref().map(|id| self.dialect.wire_session_id(id.as_str()));
        let session = params::session(&self.options.cwd, &servers, wire_id.as_deref());
        self.call(Purpose::Open { old }, method, &session, actions);
    }

    fn servers(&self, can: &McpCapabilities) -> Result<Vec<Value>, String> {
        self.options.servers.iter().map(|(name, server)| params::mcp_server(name, server, can)).collect()
    }

    pub(super) fn opened(&mut self, old: Option<SessionId>, opened: Opened, actions: &mut Actions) {
        let is_fork = matches!(self.options.conversation, Conversation::Fork(_));
        let (wire_id, id) = match (opened.session_id.clone(), old) {
            (Some(wire_id), Some(old)) if !is_fork && wire_id.trim() != old.as_str() => {
                let message = format!("requested to resume session {}, but {wire_id} answers", old.as_str());
                actions.push(warning(WarningCode::SessionMismatch, message.clone()));
                return self.fail_session(Failure::new(ErrorCode::Protocol, message), actions);
            }
            (Some(wire_id), None) => (wire_id.clone(), SessionId::from(wire_id.as_str())),
            (Some(wire_id), Some(_)) if is_fork => (wire_id.clone(), SessionId::from(wire_id.as_str())),
            (_, Some(old)) if !is_fork => (self.dialect.wire_session_id(old.as_str()), old),
            _ => {
                let text = "the agent opened a session without reporting its id";
                return self.fail_session(Failure::new(ErrorCode::Protocol, text), actions);
            }
        };
        let replays = !matches!(self.options.conversation, Conversation::New) && self.dialect.replays_after_opening();
        let current_mode = opened.modes.as_ref().map(|modes| modes.current_mode_id.clone()).filter(|_| replays);
        self.settings = Settings::new(opened);
        self.phase = Phase::Open(Session { wire_id, id });
        if self.loads_session && current_mode.is_none() {
            self.wait(Wait::History, actions);
        }
        if let Some(mode) = current_mode {
            // The call changes nothing. Its response arrives after the replayed history.
            self.set(Purpose::AwaitReplay, ("session/set_mode", serde_json::json!({"modeId": mode})), actions);
        }
        if self.dialect.is_configured_at_start() {
            return;
        }
        let mode = self.settings.set_mode(self.options.mode);
        let model = self.options.model.clone().map(|model| self.settings.set_model(&model));
        let effort = self.options.effort.clone().map(|effort| self.settings.set_effort(&effort));
        for (what, call) in [("the permission mode", mode.transpose()), ("the model", model), ("the effort", effort)] {
            match call {
                Some(Ok(setting)) => self.set(Purpose::Set(what), setting, actions),
                Some(Err(why)) => return self.fail_session(Failure::new(ErrorCode::InvalidRequest, why), actions),
                None => {}
            }
        }
    }

    /// Ends all turns of this process with a failure, because the session is not open or must not be used.
    pub(super) fn fail_session(&mut self, failure: Failure, actions: &mut Actions) {
        self.fail_session_with(failed_turn(failure), actions);
    }

    /// Ends all turns of this process, because a call failed. `what` is what the call requested.
    pub(super) fn fail_session_by(&mut self, what: &str, error: &RpcError, actions: &mut Actions) {
        let mut classification = failure::of_response(what, error);
        if error.code == failure::AUTH_REQUIRED {
            self.add_login_hint(&mut classification.failure.message);
        }
        self.fail_session_with(classification.into(), actions);
    }

    fn fail_session_with(&mut self, outcome: Outcome, actions: &mut Actions) {
        if !matches!(self.phase, Phase::Failed(_)) {
            self.phase = Phase::Failed(Box::new(outcome));
        }
        self.advance(actions);
    }

    /// Appends how the user can log in, as the end of the sentence.
    pub(super) fn add_login_hint(&self, message: &mut UntrustedText) {
        *message = format!("{}{}", message.as_str().trim_end_matches(['.', ' ']), self.login_hint()).into();
    }

    /// Returns how the user can log in. The client never logs in itself: the user selects the method, and some agents store it.
    fn login_hint(&self) -> String {
        let describe = |method: &AuthMethod| match &method.description {
            Some(text) if *text != method.name => format!("{} ({text})", method.name),
            _ => method.name.clone(),
        };
        let methods: Vec<_> = self.auth_methods.iter().map(describe).collect();
        if methods.is_empty() {
            return "; log in with the agent's own CLI".to_owned();
        }
        format!("; log in with the agent's own CLI, or set its key. It offers: {}", methods.join(", "))
    }
}
