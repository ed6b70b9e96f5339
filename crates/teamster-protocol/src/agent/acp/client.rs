//! The state machine of a client: opens a session, and takes its turns.
//!
//! Invariants: nothing is asked of the model before the session is as it was asked for; a request of the agent is always
//! answered; what an old session replays is told nobody; a turn has one outcome.

use std::path::PathBuf;

use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::Calls;
use super::dialect::Dialect;
use super::dialog::{self, Asked, Dialog, Reply};
use super::settings::{Setting, Settings};
use super::speech::{Speech, Voice};
use super::wire::{
    AuthMethod, Block, CallFields, Info, McpCapabilities, Opened, PermissionParams, PromptAnswer, PromptCapabilities,
    Update, UpdateParams, Welcome,
};
use super::{ask, failure, usage};
use crate::agent::line;
use crate::agent::rpc::{Caller, Header, METHOD_NOT_FOUND, Message, RpcError, read};
use crate::event::{
    ErrorCode, Event, Failure, Init, PermissionRequest, Plan, PlanEntry, PlanStatus, SessionId, StopReason, UsageScope,
    Warning, WarningCode,
};
use crate::protocol::{Action, Command, ExitReport, Input, Outcome, Protocol};
use crate::request::{Answer, Conversation, McpServer, OutputMode, PermissionMode, Prompt, RequestError, RunRequest};

type Actions = Vec<Action>;

/// A client of one agent's process.
pub(in crate::agent) struct Client {
    dialect: Box<dyn Dialect>,
    caller: Caller<Purpose>,
    wishes: Wishes,
    /// Whether turns come one after the other; else there is one.
    is_session: bool,
    agent: Info,
    auth_methods: Vec<AuthMethod>,
    prompt_capabilities: PromptCapabilities,
    phase: Phase,
    /// Calls that change how the session is set: no turn goes to the model before they are answered.
    settling: u32,
    settings: Settings,
    turn: Option<Turn>,
    speech: Speech,
    calls: Calls,
    dialog: Dialog,
    /// US dollars so far, as the agent tells.
    cost: Option<f64>,
    /// US dollars before the first turn.
    cost_before: Option<f64>,
}

/// What is asked for.
struct Wishes {
    cwd: PathBuf,
    servers: Vec<(String, McpServer)>,
    conversation: Conversation,
    model: Option<String>,
    effort: Option<String>,
    mode: PermissionMode,
}

enum Phase {
    /// There is no session yet.
    Opening,
    Open(Session),
    /// There will be none in this process.
    Refused(Box<Outcome>),
}

struct Session {
    /// The agent's id of it in this process.
    wire: String,
    id: SessionId,
}

/// A turn that has had no outcome yet.
struct Turn {
    /// What goes to the model, if it has not gone yet.
    prompt: Option<Prompt>,
    introduced: bool,
    interrupted: bool,
    /// The interrupt refused what the agent asked for.
    refused: bool,
    mode: PermissionMode,
    cost_before: Option<f64>,
}

/// What a call of ours is for.
#[derive(Debug)]
enum Purpose {
    Initialize,
    /// An old session was asked for, where there is an id.
    Open {
        old: Option<SessionId>,
    },
    /// The session is to be as it was asked for, before the model hears anything.
    Set(&'static str),
    /// The same, later: if it is refused, the session goes on as it was.
    SetModel,
    /// Whatever was replayed came before the answer.
    Fence,
    Prompt,
}

impl Client {
    pub(in crate::agent) fn new(
        dialect: Box<dyn Dialect>,
        request: &RunRequest,
        servers: Vec<(String, McpServer)>,
        is_session: bool,
    ) -> Result<Self, RequestError> {
        let unsupported = |option, why: &str| {
            Err(RequestError::Unsupported { agent: dialect.agent().to_owned(), option, why: why.to_owned() })
        };
        let Some(cwd) = request.cwd.clone().filter(|cwd| cwd.is_absolute()) else {
            return unsupported("a request without an absolute directory", "the protocol names it");
        };
        if request.conversation == Conversation::Continue {
            return unsupported(
                "--continue",
                "the protocol cannot tell which session is the newest: resume one by its id",
            );
        }
        for (name, server) in &servers {
            ask::check_mcp_server(dialect.agent(), name, server)?;
        }
        let prompt = Prompt { text: request.prompt.clone(), attachments: request.attachments.clone() };
        if !is_session {
            dialect.check(&prompt)?;
        }
        // What a new session has cost is known before the agent says so.
        let cost = (request.conversation == Conversation::New).then_some(0.0);
        Ok(Self {
            dialect,
            caller: Caller::new(Header::Version2),
            wishes: Wishes {
                cwd,
                servers,
                conversation: request.conversation.clone(),
                model: request.model.clone(),
                effort: request.effort.clone(),
                mode: request.permissions.mode,
            },
            is_session,
            agent: Info::default(),
            auth_methods: Vec::new(),
            prompt_capabilities: PromptCapabilities::default(),
            phase: Phase::Opening,
            settling: 0,
            settings: Settings::default(),
            turn: (!is_session).then(|| Turn::new(prompt, request.permissions.mode, cost)),
            speech: Speech::new(request.output == OutputMode::Messages),
            calls: Calls::default(),
            dialog: Dialog::default(),
            cost: None,
            cost_before: cost,
        })
    }

    fn call(&mut self, purpose: Purpose, method: &str, params: &Value, actions: &mut Actions) {
        actions.push(Action::Write(self.caller.call(purpose, method, params)));
    }

    fn message(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        match read(text)? {
            Message::Request { id, method, params } => self.asked(id, &method, params, actions),
            Message::Notification { method, params } => self.told(&method, params, actions)?,
            Message::Answer { id, outcome } => match self.caller.answered(&id) {
                Some(purpose) => self.answered(purpose, outcome, actions)?,
                // Of somebody else, or said twice.
                None => actions.push(Action::Alive),
            },
        }
        Ok(())
    }

    fn answered(
        &mut self,
        purpose: Purpose,
        outcome: Result<&RawValue, RpcError>,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        if !matches!(purpose, Purpose::Prompt) {
            actions.push(Action::Alive);
        }
        if matches!(purpose, Purpose::Set(_) | Purpose::SetModel | Purpose::Fence) {
            self.settling = self.settling.saturating_sub(1);
        }
        match (purpose, outcome) {
            (Purpose::Initialize, Ok(result)) => self.welcomed(serde_json::from_str(result.get())?, actions),
            (Purpose::Open { old }, Ok(result)) => self.opened(old, serde_json::from_str(result.get())?, actions),
            (Purpose::Prompt, Ok(result)) => self.ended(&serde_json::from_str(result.get())?, actions),
            (Purpose::Prompt, Err(error)) => self.failed(&error, actions),
            (Purpose::SetModel, Err(error)) => {
                let why = failure::of_answer("the model", &error).failure.message;
                let text = format!("the model was not changed: {why}");
                actions.push(warning(WarningCode::OptionIgnored, text));
            }
            (Purpose::Initialize, Err(error)) => self.refuse_for("initialize", &error, actions),
            (Purpose::Open { .. }, Err(error)) => self.refuse_for("a session", &error, actions),
            (Purpose::Set(what), Err(error)) => self.refuse_for(what, &error, actions),
            (Purpose::Set(_) | Purpose::SetModel | Purpose::Fence, _) => {}
        }
        self.go_on(actions);
        Ok(())
    }

    fn welcomed(&mut self, welcome: Welcome, actions: &mut Actions) {
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
        let (method, old) = match &self.wishes.conversation {
            Conversation::Resume(id) if sessions.resume.is_some() => ("session/resume", Some(id.clone())),
            Conversation::Resume(id) if can.load_session => ("session/load", Some(id.clone())),
            Conversation::Fork(id) if sessions.fork.is_some() => ("session/fork", Some(id.clone())),
            Conversation::Resume(id) | Conversation::Fork(id) => {
                let text =
                    format!("the agent cannot go on with a session like this (asked for {id}): it does not offer to");
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

    fn opened(&mut self, old: Option<SessionId>, opened: Opened, actions: &mut Actions) {
        let is_fork = matches!(self.wishes.conversation, Conversation::Fork(_));
        let (wire, id) = match (opened.session_id.clone(), old) {
            (Some(wire), Some(old)) if !is_fork && wire.trim() != old.as_str() => {
                let message = format!("asked to resume session {old}, but {wire} answers");
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

    fn set(&mut self, purpose: Purpose, (method, mut params): Setting, actions: &mut Actions) {
        if let (Phase::Open(session), Some(fields)) = (&self.phase, params.as_object_mut()) {
            fields.insert("sessionId".to_owned(), session.wire.as_str().into());
        }
        self.settling += 1;
        self.call(purpose, method, &params, actions);
    }

    /// Asks the model, if there is something to ask and the session is as it was asked for.
    fn go_on(&mut self, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        let session = match &self.phase {
            Phase::Opening => return,
            Phase::Open(session) => session,
            // What went to the model already is answered first.
            Phase::Refused(outcome) => {
                let outcome = turn.prompt.is_some().then(|| outcome.clone());
                return outcome.map_or((), |outcome| self.end_turn(outcome, actions));
            }
        };
        if !turn.introduced {
            turn.introduced = true;
            let mut init = Init::new(self.dialect.agent(), session.id.clone());
            init.model = self.settings.model().or(self.wishes.model.as_deref()).map(str::to_owned);
            init.agent_version.clone_from(&self.agent.version);
            init.cwd = Some(self.wishes.cwd.clone());
            actions.push(Action::Emit(Event::Init(Box::new(init))));
        }
        if self.settling > 0 {
            return;
        }
        let Some(prompt) = turn.prompt.take() else { return };
        match self.dialect.check(&prompt).and_then(|()| ask::prompt(&prompt, &self.prompt_capabilities)) {
            Ok(blocks) => {
                let params = serde_json::json!({"sessionId": session.wire, "prompt": blocks});
                self.call(Purpose::Prompt, "session/prompt", &params, actions);
            }
            Err(error) => {
                let failure = Some(Failure::new(ErrorCode::InvalidRequest, error.to_string()));
                self.end_turn(Box::new(Outcome { failure, ..Outcome::default() }), actions);
            }
        }
    }

    /// There is no session, or none that may be spoken to.
    fn refuse(&mut self, failure: Failure, actions: &mut Actions) {
        self.refuse_with(Outcome { failure: Some(failure), ..Outcome::default() }, actions);
    }

    fn refuse_for(&mut self, what: &str, error: &RpcError, actions: &mut Actions) {
        let mut judgement = failure::of_answer(what, error);
        if error.code == failure::AUTH_REQUIRED {
            judgement.failure.message.push_str(&self.ways_to_log_in());
        }
        self.refuse_with(judgement.into(), actions);
    }

    fn refuse_with(&mut self, outcome: Outcome, actions: &mut Actions) {
        if !matches!(self.phase, Phase::Refused(_)) {
            self.phase = Phase::Refused(Box::new(outcome));
        }
        self.go_on(actions);
    }

    /// We never log in by ourselves: that would choose for the user, and some agents write it down.
    fn ways_to_log_in(&self) -> String {
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

    fn told(&mut self, method: &str, params: &RawValue, actions: &mut Actions) -> serde_json::Result<()> {
        match method {
            "session/update" => self.update(&serde_json::from_str(params.get())?, actions)?,
            "$/cancel_request" => {
                let params: Value = serde_json::from_str(params.get())?;
                if let Some((id, asked)) = params.get("requestId").and_then(|id| self.dialog.take_theirs(id)) {
                    actions.push(Action::Withdraw(id));
                    self.reply(&asked, &dialog::cancelled(), "The agent asks no more.", actions);
                }
            }
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    fn update(&mut self, params: &UpdateParams<'_>, actions: &mut Actions) -> serde_json::Result<()> {
        let update: Update<'_> = serde_json::from_str(params.update.get())?;
        let Phase::Open(session) = &self.phase else {
            actions.push(Action::Alive);
            return Ok(());
        };
        let of_ours = session.wire == *params.session_id;
        let mut events = Vec::new();
        match &*update.kind {
            _ if !of_ours => {}
            "config_option_update" => self.settings.options(update.config_options),
            "current_mode_update" => {
                let mode = update.current_mode_id.unwrap_or_default();
                if self.settings.note_mode(&mode, self.wishes.mode) {
                    let text =
                        format!("the agent went into mode {mode:?} by itself, which allows more than was asked for");
                    events.push(Warning::new(WarningCode::Notice, text).into());
                }
            }
            "usage_update" => {
                let cost = update.cost.filter(|cost| cost.currency == "USD" && cost.amount.is_finite());
                self.cost = cost.map(|cost| cost.amount).or(self.cost);
            }
            // What comes before the model was asked is an old session's history.
            _ if self.turn.as_ref().is_none_or(|turn| turn.prompt.is_some()) => {}
            "agent_message_chunk" => self.say(Voice::Text, &update, &mut events),
            "agent_thought_chunk" => self.say(Voice::Thinking, &update, &mut events),
            "tool_call" | "tool_call_update" => {
                let fields: CallFields = serde_json::from_str(params.update.get())?;
                self.speech.pause(&mut events);
                self.calls.update(fields, &*update.kind == "tool_call", &*self.dialect, &mut events);
            }
            "plan" => {
                let entry = |entry: super::wire::Entry| PlanEntry {
                    status: PlanStatus::from(entry.status.as_str()),
                    content: entry.content,
                };
                let entries = update.entries.into_iter().map(entry).collect();
                events.push(Event::Plan(Plan { entries }));
            }
            _ => {}
        }
        emit(events, actions);
        Ok(())
    }

    fn say(&mut self, voice: Voice, update: &Update<'_>, events: &mut Vec<Event>) {
        let block = update.content.and_then(|raw| serde_json::from_str::<Block<'_>>(raw.get()).ok());
        let Some(block) = block else { return };
        let inner = block.resource.and_then(|resource| resource.text);
        let text = match &*block.kind {
            "text" => block.text.as_deref(),
            "resource_link" => block.uri.as_deref(),
            "resource" => inner.as_deref(),
            kind => {
                let text = format!("the agent said something that is no text, and is left out: {kind}");
                return events.push(Warning::new(WarningCode::Notice, text).into());
            }
        };
        let text = text.unwrap_or_default();
        if !self.dialect.is_noise(text) {
            self.speech.say(voice, update.message_id.as_deref(), text, events);
        }
    }

    fn asked(&mut self, id: Value, method: &str, params: &RawValue, actions: &mut Actions) {
        if method != "session/request_permission" {
            let text = format!("Teamster does not serve {method}");
            actions.push(Action::Write(self.caller.refuse(&id, METHOD_NOT_FOUND, &text)));
            return actions.push(Action::Alive);
        }
        let params: PermissionParams = serde_json::from_str(params.get()).unwrap_or_default();
        let PermissionParams { options, tool_call } = params;
        let call = tool_call.tool_call_id.clone();
        let asked = Asked::new(id, call.clone(), options);
        let turn = self.turn.as_ref().filter(|turn| turn.prompt.is_none() && !turn.interrupted);
        let Some(mode) = turn.map(|turn| turn.mode) else {
            return self.reply(&asked, &dialog::cancelled(), "interrupted", actions);
        };
        let kind = tool_call.kind.clone();
        let mut events = Vec::new();
        self.speech.pause(&mut events);
        let tool = self.calls.ask(tool_call, &*self.dialect, &mut events);
        emit(events, actions);
        let Some(tool) = tool else { return self.reply(&asked, &dialog::cancelled(), "interrupted", actions) };
        let kind = kind.unwrap_or_default();
        match dialog::by_mode(mode, &kind) {
            // Everything is allowed: more than this once, too, where there is no other way.
            Some(answer @ Answer::Allow { .. })
                if mode == PermissionMode::Full && !self.reply_to(&asked, &answer).allows =>
            {
                self.reply_with(&asked, &Answer::AllowAlways, actions);
            }
            Some(answer) => self.reply_with(&asked, &answer, actions),
            None if !self.is_session => {
                let why = Some("This run cannot ask for permission.".to_owned());
                self.reply_with(&asked, &Answer::Deny { message: why }, actions);
            }
            None => {
                let options = asked.options();
                let request_id = self.dialog.wait(asked);
                actions.push(Action::Emit(Event::PermissionRequest(Box::new(PermissionRequest {
                    request_id,
                    tool_id: Some(call.as_str().into()),
                    tool_name: tool.name,
                    input: tool.input,
                    options,
                }))));
            }
        }
    }

    fn reply_with(&mut self, asked: &Asked, answer: &Answer, actions: &mut Actions) {
        if let Answer::Allow { input: Some(_) } = answer {
            let text = "the agent cannot call a tool with other arguments than its own: the call was denied";
            actions.push(warning(WarningCode::OptionIgnored, text.to_owned()));
        }
        let reply = self.reply_to(asked, answer);
        let why = match answer {
            Answer::Deny { message: Some(message) } => message,
            _ => "The user said no.",
        };
        self.reply(asked, &reply, why, actions);
    }

    fn reply_to(&self, asked: &Asked, answer: &Answer) -> Reply {
        asked.reply(answer, |option| self.dialect.rank(option))
    }

    /// Answers a request of the agent. After a denial nothing may ever come of the call, so its end is told here.
    fn reply(&mut self, asked: &Asked, reply: &Reply, why: &str, actions: &mut Actions) {
        actions.push(Action::Write(self.caller.answer(&asked.id, &reply.result)));
        if !reply.allows && self.turn.is_some() {
            let mut events = Vec::new();
            self.calls.deny(&asked.call, why, &*self.dialect, &mut events);
            emit(events, actions);
        }
    }

    /// Whoever waits for leave has waited long enough.
    fn cancel_requests(&mut self, actions: &mut Actions) {
        for (id, asked) in self.dialog.take_all() {
            if let Some(turn) = &mut self.turn {
                turn.refused |= turn.interrupted;
            }
            actions.push(Action::Withdraw(id));
            self.reply(&asked, &dialog::cancelled(), "interrupted", actions);
        }
    }

    fn interrupt(&mut self, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        turn.interrupted = true;
        if turn.prompt.take().is_some() {
            // The model has heard nothing.
            return self.end_turn(Box::new(interrupted_turn()), actions);
        }
        // Gemini CLI 0.61.0 does not hear of it while a request waits.
        self.cancel_requests(actions);
        if let Phase::Open(session) = &self.phase {
            let params = serde_json::json!({"sessionId": session.wire});
            actions.push(Action::Write(self.caller.notify("session/cancel", Some(&params))));
        }
    }

    /// The agent has answered the prompt.
    fn ended(&mut self, answer: &PromptAnswer, actions: &mut Actions) {
        let stop = answer.stop_reason.as_deref().unwrap_or("end_turn");
        // A turn that ended before it heard of it was not interrupted. (OpenCode 1.18.33 may end one by itself, and well, in the
        // moment in which what it asked for is refused.)
        let interrupted =
            self.turn.as_ref().is_some_and(|turn| turn.interrupted && (stop == "cancelled" || turn.refused));
        let denied = !self.calls.denials.is_empty();
        let failed = |code, text: &str| Some(Failure::new(code, text));
        let (stop_reason, failure) = match stop {
            "max_turn_requests" => {
                let text = "the agent reached its limit of calls of the model";
                (StopReason::MaxTurns, failed(ErrorCode::MaxTurns, text))
            }
            "refusal" => {
                let text = "the model refused to go on";
                (
                    StopReason::Refusal,
                    Some(Failure { retryable: Some(false), ..Failure::new(ErrorCode::Provider, text) }),
                )
            }
            // Some agents give up the turn when leave is denied.
            "cancelled" if !interrupted && !denied => {
                (StopReason::Cancelled, failed(ErrorCode::Aborted, "the agent cancelled the turn by itself"))
            }
            "end_turn" if self.dialect.owes_an_answer() && !self.speech.has_text && !interrupted => {
                (StopReason::EndTurn, failed(ErrorCode::Provider, "the agent ended without an answer"))
            }
            other => (StopReason::from(other), None),
        };
        let usage = answer.usage.as_ref().and_then(|tokens| usage::of_turn(&self.agent.name, tokens));
        let outcome = Outcome {
            failure,
            interrupted,
            stop_reason: Some(stop_reason),
            usage: usage.map(|usage| (usage, UsageScope::Run)),
            ..Outcome::default()
        };
        self.end_turn(Box::new(outcome), actions);
    }

    fn failed(&mut self, error: &RpcError, actions: &mut Actions) {
        let interrupted = self.turn.as_ref().is_some_and(|turn| turn.interrupted);
        if interrupted {
            // The protocol forbids it, and agents do it: what was cancelled fails in their hands.
            return self.end_turn(Box::new(interrupted_turn()), actions);
        }
        let mut judgement = failure::of_answer("the prompt", error);
        if error.code == failure::AUTH_REQUIRED {
            judgement.failure.message.push_str(&self.ways_to_log_in());
        }
        self.end_turn(Box::new(judgement.into()), actions);
    }

    /// Gives the turn its outcome, with what is known beside it.
    fn end_turn(&mut self, mut outcome: Box<Outcome>, actions: &mut Actions) {
        self.cancel_requests(actions);
        let Some(turn) = self.turn.take() else { return };
        let mut events = Vec::new();
        self.speech.pause(&mut events);
        self.calls.tell_held(&*self.dialect, &mut events);
        emit(events, actions);
        if let Phase::Open(session) = &self.phase {
            outcome.session_id = Some(session.id.clone());
        }
        outcome.total_cost_usd = self.cost.zip(turn.cost_before).map(|(now, before)| cost_since(now, before));
        outcome.permission_denials = std::mem::take(&mut self.calls.denials);
        outcome.model = self.settings.model().map(str::to_owned);
        actions.push(Action::Outcome(outcome));
        if !self.is_session {
            actions.push(Action::CloseStdin);
        } else if matches!(self.phase, Phase::Refused(_)) {
            // Another process may fare better: the user may have logged in.
            actions.push(Action::Reopen);
        }
    }

    fn command(&mut self, command: Command<'_>, actions: &mut Actions) {
        match command {
            Command::Send(prompt) => {
                self.calls.next_turn();
                self.speech.next_turn();
                self.turn = Some(Turn::new(prompt.clone(), self.wishes.mode, self.cost.or(self.cost_before)));
                self.go_on(actions);
            }
            Command::Answer { request, answer } => {
                if let Some(asked) = self.dialog.take(request) {
                    self.reply_with(&asked, answer, actions);
                }
            }
            Command::SetModel(model) => match self.settings.set_model(model) {
                _ if !matches!(self.phase, Phase::Open(_)) => actions.push(Action::Reopen),
                Ok(setting) => self.set(Purpose::SetModel, setting, actions),
                Err(why) => {
                    actions.push(warning(WarningCode::OptionIgnored, format!("the model was not changed: {why}")));
                }
            },
            Command::SetPermissionMode(_) if self.dialect.is_set_at_start() => actions.push(Action::Reopen),
            Command::SetPermissionMode(mode) => self.set_permission_mode(mode, actions),
            // The protocol has no way to say more within a turn.
            Command::Steer { id, .. } => actions.push(Action::Steered { id: id.clone(), heard: false }),
            Command::Close => actions.push(Action::CloseStdin),
        }
    }

    /// If the agent cannot follow, no further turn goes to its model.
    fn set_permission_mode(&mut self, mode: PermissionMode, actions: &mut Actions) {
        self.wishes.mode = mode;
        if !matches!(self.phase, Phase::Open(_)) {
            return;
        }
        match self.settings.set_mode(mode) {
            Ok(Some(setting)) => self.set(Purpose::Set("the permission mode"), setting, actions),
            Ok(None) => {}
            Err(why) => {
                self.phase = Phase::Refused(Box::new(Outcome {
                    failure: Some(Failure::new(ErrorCode::InvalidRequest, why)),
                    ..Outcome::default()
                }));
            }
        }
    }

    fn line(&mut self, bytes: &[u8], actions: &mut Actions) {
        let read = line::each_json(bytes, |text| self.message(text, actions));
        if let Err(error) = read {
            let message = format!("skipped a line that is not of the protocol ({error})");
            let warning = Warning::new(WarningCode::MalformedLine, message);
            actions.push(Action::Emit(warning.with("line", line::excerpt(bytes)).into()));
        }
    }

    fn exited(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        if self.turn.is_some()
            && let Some(judgement) = self.dialect.of_exit(exit)
        {
            self.end_turn(Box::new(judgement.into()), actions);
        }
    }
}

fn interrupted_turn() -> Outcome {
    Outcome { interrupted: true, stop_reason: Some(StopReason::Cancelled), ..Outcome::default() }
}

impl Turn {
    fn new(prompt: Prompt, mode: PermissionMode, cost_before: Option<f64>) -> Self {
        Self { prompt: Some(prompt), introduced: false, interrupted: false, refused: false, mode, cost_before }
    }
}

impl Protocol for Client {
    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            Input::Started => self.call(Purpose::Initialize, "initialize", &ask::initialize(), actions),
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) => self.line(bytes, actions),
            Input::Diagnostic(bytes) => {
                if let Some(failure) = self.dialect.diagnostic(bytes, actions) {
                    // An answer without what the caller cannot do without is none.
                    let outcome = Outcome { failure: Some(failure), ..Outcome::default() };
                    self.phase = Phase::Refused(Box::new(outcome.clone()));
                    self.end_turn(Box::new(outcome), actions);
                }
            }
            Input::Interrupt => self.interrupt(actions),
            Input::Command(command) => self.command(command, actions),
            Input::Exited(exit) => self.exited(exit, actions),
            Input::Server(_) => {}
        }
    }

    fn acknowledges(&self) -> bool {
        false
    }

    fn shown_diagnostics(&self, stderr: &str) -> Option<String> {
        self.dialect.shown_diagnostics(stderr)
    }
}

/// In dollars to the millionth of a cent: the difference of two sums has digits that mean nothing.
fn cost_since(total: f64, before: f64) -> f64 {
    ((total - before).max(0.0) * 1e8).round() / 1e8
}

fn emit(events: Vec<Event>, actions: &mut Actions) {
    if events.is_empty() {
        actions.push(Action::Alive);
    }
    actions.extend(events.into_iter().map(Action::Emit));
}

fn warning(code: WarningCode, message: String) -> Action {
    Action::Emit(Warning::new(code, message).into())
}
