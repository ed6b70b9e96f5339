//! The state machine for OpenCode's server: the lines and events of the server, its replies, and the caller's commands.
//!
//! Invariants: a prompt is sent once, and only after the events of its session are read. A run ends with its first turn. A turn
//! has one outcome. A run sends no request to its caller.

mod events;
mod handshake;
mod parts;
mod server_requests;
mod steering;
mod turns;

use super::super::logs;
use super::calls::{Calls, Purpose};
use super::log_errors::LogErrors;
use super::messages::MessageAssembler;
use super::prompt::PromptOptions;
use super::requests::PendingRequests;
use super::tool_calls::ToolCall;
use super::turn::Turn;
use crate::agent::failure::Classification;
use crate::agent::line;
use crate::agent::mcp::Health;
use crate::bounded::Bounded;
use crate::protocol::{Action, CallId, Command, Input, ProcessAction, Protocol, ServerInput, SessionAction};
use serde_json::Value;
use teamster_types::event::{ErrorCode, Event, Failure, Init, SessionId, ToolId, Warning, WarningCode};
use teamster_types::request::{Conversation, OutputMode, Prompt, RequestError, RunRequest};

type Actions = Vec<Action>;

/// The protocol of a run or a session, in one server.
#[derive(Debug)]
pub(super) struct ServeProtocol {
    kind: Kind,
    prompt_options: PromptOptions,
    /// Whether parts are emitted only when they are complete.
    whole_messages: bool,
    max_turns: Option<u64>,
    max_budget_usd: Option<f64>,
    /// The rest of the session's budget.
    session_budget_usd: Option<f64>,
    conversation: Conversation,
    servers: Health,
    /// Whether the request has MCP servers.
    has_mcp_servers: bool,
    calls: Calls,
    handshake: Handshake,
    state: State,
    /// The event for the session, once the session is known.
    init: Option<Init>,
    /// The sessions of subagents, with the tool calls that started them if those are known.
    subagents: Bounded<String, Option<ToolId>>,
    /// The tool calls in progress, by their parts.
    tools: Bounded<String, ToolCall>,
    messages: MessageAssembler,
    requests: PendingRequests,
    turn: Option<Turn>,
    /// A prompt that is sent when the session is ready.
    unsent_prompt: Option<Value>,
    /// Whether the agent may have consumed the last prompt.
    prompt_consumed: bool,
    /// The newest message of earlier turns. The ids of later messages are greater.
    newest_past_message: Option<String>,
    log_errors: LogErrors,
}

/// What the process is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A run: one turn, without an approver.
    Run,
    /// A session: many turns, whose caller answers requests.
    Session,
}

/// The progress of the handshake.
#[derive(Debug, Default)]
struct Handshake {
    /// Whether the server's address is known.
    is_connected: bool,
    /// The working directory of the server.
    directory: Option<String>,
    /// The call that creates the session. It is sent with the first prompt.
    deferred_call: Option<Action>,
    /// Whether the event stream has started.
    is_subscribed: bool,
    /// Whether the status of the MCP servers was requested and not yet received.
    awaits_mcp_status: bool,
}

/// The state of the session.
#[derive(Debug)]
enum State {
    Connecting,
    Ready,
    /// No turn can succeed, for this reason.
    Failed(Classification),
    /// The outcome of a run was returned.
    Closed,
}

impl ServeProtocol {
    /// Returns the protocol of a run, which is one turn.
    pub(super) fn run(request: &RunRequest, servers: Health) -> Result<Self, RequestError> {
        let mut protocol = Self::new(request, servers, Kind::Run)?;
        protocol.unsent_prompt = Some(protocol.prompt_options.body(&request.prompt, &request.attachments)?);
        protocol.turn = Some(Turn::default());
        Ok(protocol)
    }

    /// Returns the protocol of a session, which gets a prompt for each turn.
    pub(super) fn session(request: &RunRequest, servers: Health) -> Result<Self, RequestError> {
        Self::new(request, servers, Kind::Session)
    }

    fn new(request: &RunRequest, servers: Health, kind: Kind) -> Result<Self, RequestError> {
        Ok(Self {
            kind,
            prompt_options: PromptOptions::of(request)?,
            whole_messages: request.output != OutputMode::Stream,
            max_turns: request.max_turns.map(|turns| u64::from(turns.get())),
            max_budget_usd: request.max_budget_usd,
            session_budget_usd: request.max_session_budget_usd,
            conversation: request.conversation.clone(),
            servers,
            has_mcp_servers: !request.mcp_servers.is_empty(),
            calls: Calls::default(),
            handshake: Handshake::default(),
            state: State::Connecting,
            init: None,
            subagents: Bounded::default(),
            tools: Bounded::default(),
            messages: MessageAssembler::default(),
            requests: PendingRequests::default(),
            turn: None,
            unsent_prompt: None,
            prompt_consumed: false,
            newest_past_message: None,
            log_errors: LogErrors::default(),
        })
    }

    fn is_run(&self) -> bool {
        self.kind == Kind::Run
    }

    /// Returns the id of the session, once it is known.
    fn id(&self) -> Option<&SessionId> {
        self.init.as_ref().map(|init| &init.session_id)
    }

    /// Emits the session of a turn in progress.
    fn emit_init(&self, actions: &mut Actions) {
        if self.turn.is_some() {
            actions.extend(self.init.clone().map(|init| Action::Emit(Event::Init(Box::new(init)))));
        }
    }

    fn command(&mut self, command: Command<'_>, actions: &mut Actions) {
        match command {
            Command::Send { prompt: Prompt { text, attachments, .. }, .. } => {
                self.start_turn(text, attachments, actions);
            }
            Command::Answer { request, answer } => self.requests.answer(request, answer, &mut self.calls, actions),
            Command::SetModel(model) => {
                if let Err(error) = self.prompt_options.set_model(model) {
                    let text = format!("the model was not changed: {error}");
                    actions.push(Action::Emit(Warning::new(WarningCode::OptionIgnored, text).into()));
                }
            }
            // The rules are in the configuration, which is read at the start.
            Command::SetPermissionMode(_) => actions.push(Action::Session(SessionAction::RestartProcess)),
            // A signal is the only way to stop the server. The conversation is already stored.
            Command::Close => actions.push(Action::Process(ProcessAction::Stop)),
            Command::Steer { id, prompt } => self.steer(id, prompt, actions),
        }
    }

    fn reply(&mut self, call: CallId, purpose: Purpose, status: u16, body: &[u8], actions: &mut Actions) {
        actions.push(Action::Alive);
        self.prompt_consumed |= purpose == Purpose::Prompt;
        match (purpose, status) {
            (Purpose::Directory, 200) => self.directory_received(body, actions),
            (Purpose::ListSessions, 200) => self.sessions_received(body, actions),
            (Purpose::CreateSession, 200) => self.session_created(body, actions),
            (Purpose::McpStatus, 200) => self.mcp_status_received(body, actions),
            (Purpose::FindSession, 200) => self.session_found(body, actions),
            // Events report the effect. An abort or answer may be too late.
            (Purpose::Prompt | Purpose::Steer, 200..=299) | (Purpose::Abort | Purpose::Answer, _) => {}
            (Purpose::Steer, _) => self.steer_rejected(call, actions),
            _ => self.call_failed(purpose, status, body, actions),
        }
    }

    fn unreachable(&mut self, purpose: Option<Purpose>, why: &str, actions: &mut Actions) {
        // After an abort that fails, the process is killed.
        if purpose == Some(Purpose::Abort) {
            return;
        }
        let failure = Failure::new(ErrorCode::Connection, format!("the CLI's own server: {why}"));
        self.fail(Classification { failure, row: None }, actions);
    }

    fn server(&mut self, input: ServerInput<'_>, actions: &mut Actions) {
        match input {
            ServerInput::Reply { call, status, body } => {
                if let Some(purpose) = self.calls.complete(call) {
                    self.reply(call, purpose, status, body, actions);
                }
            }
            ServerInput::Event(data) => {
                if let Err(error) = line::with_json(data, |text| self.event(text, actions)) {
                    let message = format!("skipped an event that is not part of the protocol ({error})");
                    let warning = Warning::new(WarningCode::MalformedLine, message);
                    actions.push(Action::Emit(warning.with("line", line::excerpt(data)).into()));
                }
            }
            ServerInput::Unreachable { call: Some(call), why } => {
                if let Some(purpose) = self.calls.complete(call) {
                    self.unreachable(Some(purpose), why, actions);
                }
            }
            ServerInput::Unreachable { call: None, why } => self.unreachable(None, why, actions),
        }
    }

    fn diagnostic(&mut self, line: &[u8], actions: &mut Actions) {
        let Ok(line) = std::str::from_utf8(line) else { return };
        self.log_errors.add(line);
        let Some((server, status, reason)) = logs::failed_server(line) else { return };
        if let Some(failure) = self.servers.failed(server, status, reason, actions) {
            self.fail(Classification { failure, row: None }, actions);
        }
    }
}

impl Protocol for ServeProtocol {
    fn supports_steering(&self) -> bool {
        !self.is_run()
    }

    /// Returns whether the agent may have consumed the prompt. Output is no evidence: events and replies use different connections,
    /// and an event may be much later than what it reports.
    fn may_have_consumed_prompt(&self, _: bool) -> bool {
        self.prompt_consumed
    }

    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            _ if matches!(self.state, State::Closed) => {}
            Input::Started | Input::TimerElapsed => {}
            Input::Line(bytes) => self.line(&String::from_utf8_lossy(bytes), actions),
            Input::Diagnostic(line) => self.diagnostic(line, actions),
            Input::Server(input) => self.server(input, actions),
            Input::Interrupt => self.interrupt(actions),
            Input::Command(command) => self.command(command, actions),
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }
}
