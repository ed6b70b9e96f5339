//! The protocol of an ACP client: it opens a session, and runs its turns.
//!
//! Invariants: no prompt is sent before the session has the requested settings. Every request of the agent gets a response. The
//! replayed history of an old session is not emitted. A turn has one outcome.

mod chunk_shape;
mod notifications;
mod quiet;
mod requests;
mod session_setup;
mod turn;
mod turns;
mod unrequested;
mod waits;

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::Calls;
use super::dialect::Dialect;
use super::messages::MessageAssembler;
use super::permissions::PendingRequests;
use super::settings::{Setting, Settings};
use super::usage::ReportedUsage;
use super::wire::{AuthMethod, Info, PromptCapabilities};
use super::{failure, params};
use crate::agent::line;
use crate::agent::rpc::{Caller, Header, Message, RpcError, read};
use crate::protocol::{Action, Command, ExitReport, Input, Outcome, ProcessAction, Protocol, SessionAction};
use crate::rules::{PathResolver, TextOnly, ToolRules};
use chunk_shape::ChunkShape;
use quiet::Quiet;
use teamster_types::event::{
    AnsweredBy, ContextUse, ErrorCode, Event, Failure, PermissionRequest, RequestId, SessionId, Warning, WarningCode,
};
use teamster_types::request::{Conversation, McpServer, OutputMode, PermissionMode, Prompt, RequestError, RunRequest};
use turn::{Response, Turn, failed_turn};

type Actions = Vec<Action>;

/// A client of one agent's process.
pub(in crate::agent) struct Client {
    dialect: Box<dyn Dialect>,
    caller: Caller<Purpose>,
    options: SessionOptions,
    /// Whether the process serves many turns. A run has one.
    is_session: bool,
    agent: Info,
    auth_methods: Vec<AuthMethod>,
    prompt_capabilities: PromptCapabilities,
    /// Whether the agent can resume its sessions.
    resumes: bool,
    /// Whether the session is opened with `session/load`, which replays its history.
    loads_session: bool,
    quiet: Quiet,
    phase: Phase,
    /// The number of pending calls that change the session's settings. No prompt is sent before they are answered.
    pending_settings: u32,
    settings: Settings,
    turn: Option<Turn>,
    messages: MessageAssembler,
    calls: Calls,
    pending: PendingRequests,
    /// The tool rules. A call that they deny is denied in every mode.
    rules: ToolRules,
    paths: Box<dyn PathResolver + Send>,
    /// The last chunk of a message that was read as JSON.
    last_chunk: Option<ChunkShape>,
    /// The last cost in US dollars that the agent reported.
    cost: Option<f64>,
    context: Option<ContextUse>,
    /// The cost in US dollars before the first turn.
    cost_before: Option<f64>,
    usage: ReportedUsage,
}

/// The requested properties of the session.
struct SessionOptions {
    cwd: PathBuf,
    servers: Vec<(String, McpServer)>,
    conversation: Conversation,
    model: Option<String>,
    effort: Option<String>,
    mode: PermissionMode,
}

enum Phase {
    /// The session is not open.
    Opening,
    Open(Session),
    /// This process cannot open the session. Each turn ends with this outcome.
    Failed(Box<Outcome>),
}

struct Session {
    /// The id that the agent uses in this process.
    wire_id: String,
    id: SessionId,
}

/// The purpose of a call of ours.
#[derive(Debug)]
enum Purpose {
    Initialize,
    /// Opens the session: an old one, if there is an id.
    Open {
        old: Option<SessionId>,
    },
    /// Applies a requested setting. If it fails, the session cannot be used.
    Set(&'static str),
    /// Changes the model of an open session. If it fails, the session keeps its model.
    SetModel,
    /// Marks the end of the replayed history: the response arrives after it.
    AwaitReplay,
    Prompt,
}

/// Where the answer to a permission request comes from.
enum RequestSource {
    /// The caller answered the request with this id.
    Caller(RequestId),
    /// The request was not emitted. A rule, the mode or the lack of a caller answers it.
    Automatic(Box<PermissionRequest>, AnsweredBy),
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
            return unsupported("a request without an absolute directory", "the protocol requires one");
        };
        if matches!(request.conversation, Conversation::Continue | Conversation::ForkNewest) {
            return unsupported(
                "conversation=continue",
                "the protocol does not identify the newest session; resume one by its id",
            );
        }
        for (name, server) in &servers {
            params::check_mcp_server(dialect.agent(), name, server)?;
        }
        let rules = ToolRules::read(&request.permissions, Some(&cwd))?;
        let mut prompt = Prompt::from(request.prompt.clone());
        prompt.attachments.clone_from(&request.attachments);
        if !is_session {
            dialect.check_prompt(&prompt)?;
        }
        // A new session has cost nothing. Agents report the cost of others.
        let cost = (request.conversation == Conversation::New).then_some(0.0);
        Ok(Self {
            dialect,
            caller: Caller::new(Header::Version2),
            options: SessionOptions {
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
            resumes: false,
            loads_session: false,
            quiet: Quiet::default(),
            phase: Phase::Opening,
            pending_settings: 0,
            settings: Settings::default(),
            turn: (!is_session).then(|| Turn::new(prompt, request.permissions.mode, cost)),
            messages: MessageAssembler::new(request.output == OutputMode::Messages),
            calls: Calls::default(),
            pending: PendingRequests::default(),
            rules,
            paths: Box::new(TextOnly),
            last_chunk: None,
            cost: None,
            context: None,
            cost_before: cost,
            usage: ReportedUsage::default(),
        })
    }

    fn call(&mut self, purpose: Purpose, method: &str, params: &Value, actions: &mut Actions) {
        actions.push(Action::Process(ProcessAction::Write(self.caller.call(purpose, method, params))));
    }

    fn message(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        match read(text)? {
            Message::Request { id, method, params } => self.request(id, &method, params, actions),
            Message::Notification { method, params } => self.notification(text, &method, params, actions)?,
            Message::Answer { id, outcome } => match self.caller.answered(&id) {
                Some(purpose) => self.call_answered(purpose, outcome, actions),
                // A second response, or one to an unknown call.
                None => actions.push(Action::Alive),
            },
        }
        Ok(())
    }

    fn call_answered(&mut self, purpose: Purpose, outcome: Result<&RawValue, RpcError>, actions: &mut Actions) {
        if !matches!(purpose, Purpose::Prompt) {
            actions.push(Action::Alive);
        }
        if matches!(purpose, Purpose::Set(_) | Purpose::SetModel | Purpose::AwaitReplay) {
            self.pending_settings = self.pending_settings.saturating_sub(1);
        }
        match (purpose, outcome) {
            (Purpose::Initialize, Ok(result)) => match fields(result) {
                Ok(result) => self.initialized(result, actions),
                Err(error) => self.fail_session(unreadable("initialize", &error), actions),
            },
            (Purpose::Open { old }, Ok(result)) => match fields(result) {
                Ok(opened) => self.opened(old, opened, actions),
                Err(error) => self.fail_session(unreadable("a session", &error), actions),
            },
            (Purpose::Prompt, Ok(result)) => {
                let failed = |error| Response::Failed(Box::new(failed_turn(unreadable("the prompt", &error))));
                self.responded(fields(result).map_or_else(failed, Response::Result), actions);
            }
            (Purpose::Prompt, Err(error)) => {
                self.responded(Response::Failed(Box::new(self.failed_by(&error))), actions);
            }
            (Purpose::SetModel, Err(error)) => {
                let why = failure::of_response("the model", &error).failure.message;
                let text = format!("the model was not changed: {}", why.as_str());
                actions.push(warning(WarningCode::OptionIgnored, text));
            }
            (Purpose::Initialize, Err(error)) => self.fail_session_by("initialize", &error, actions),
            (Purpose::Open { .. }, Err(error)) => self.fail_session_by("a session", &error, actions),
            (Purpose::Set(what), Err(error)) => self.fail_session_by(what, &error, actions),
            (Purpose::Set(_) | Purpose::SetModel | Purpose::AwaitReplay, _) => {}
        }
        self.advance(actions);
    }

    fn set(&mut self, purpose: Purpose, (method, mut params): Setting, actions: &mut Actions) {
        if let (Phase::Open(session), Some(fields)) = (&self.phase, params.as_object_mut()) {
            fields.insert("sessionId".to_owned(), session.wire_id.as_str().into());
        }
        self.pending_settings += 1;
        self.call(purpose, method, &params, actions);
    }

    fn command(&mut self, command: Command<'_>, actions: &mut Actions) {
        match command {
            Command::Send { prompt, .. } => {
                self.calls.next_turn();
                self.messages.next_turn();
                self.turn = Some(Turn::new(prompt.clone(), self.options.mode, self.cost.or(self.cost_before)));
                self.advance(actions);
            }
            Command::Answer { request, answer } => {
                if self.answer_question(request, answer, actions) {
                    return;
                }
                if let Some(pending) = self.pending.take(request) {
                    self.reply_with(RequestSource::Caller(request.clone()), &pending, answer, actions);
                }
            }
            Command::SetModel(model) => match self.settings.set_model(model) {
                _ if !matches!(self.phase, Phase::Open(_)) => {
                    actions.push(Action::Session(SessionAction::RestartProcess));
                }
                Ok(setting) => self.set(Purpose::SetModel, setting, actions),
                Err(why) => {
                    actions.push(warning(
                        WarningCode::OptionIgnored,
                        format!("the model was not changed: {}", why.as_str()),
                    ));
                }
            },
            Command::SetPermissionMode(_) if self.dialect.is_configured_at_start() => {
                actions.push(Action::Session(SessionAction::RestartProcess));
            }
            Command::SetPermissionMode(mode) => self.set_permission_mode(mode, actions),
            // The protocol does not support more input within a turn.
            Command::Steer { id, .. } => {
                actions.push(Action::Session(SessionAction::Steered { id: id.clone(), accepted: false }));
            }
            Command::Close => {
                self.report_late_text(actions);
                actions.push(Action::Process(ProcessAction::CloseStdin));
            }
        }
    }

    /// Changes the permission mode. If the agent has no suitable mode, no further prompt is sent.
    fn set_permission_mode(&mut self, mode: PermissionMode, actions: &mut Actions) {
        self.options.mode = mode;
        if !matches!(self.phase, Phase::Open(_)) {
            return;
        }
        match self.settings.set_mode(mode) {
            Ok(Some(setting)) => self.set(Purpose::Set("the permission mode"), setting, actions),
            Ok(None) => {}
            Err(why) => {
                self.phase = Phase::Failed(Box::new(failed_turn(Failure::new(ErrorCode::InvalidRequest, why))));
            }
        }
    }

    fn line(&mut self, bytes: &[u8], actions: &mut Actions) {
        if self.repeated_chunk(bytes, actions) {
            return;
        }
        let read = line::each_json(bytes, |text| self.message(text, actions));
        if let Err(error) = read {
            let message = format!("skipped a line that is not of the protocol ({error})");
            let warning = Warning::new(WarningCode::MalformedLine, message);
            actions.push(Action::Emit(warning.with("line", line::excerpt(bytes)).into()));
        }
    }

    fn exited(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        self.finish_turn(actions);
        if let Some(outcome) = self.turn.as_ref().and_then(|turn| turn.reported.clone()) {
            let mut events = Vec::new();
            self.messages.end_message(&mut events);
            actions.extend(events.into_iter().map(Action::Emit));
            return actions.push(Action::Outcome(outcome));
        }
        if self.turn.is_some()
            && let Some(classification) = self.dialect.classify_exit(exit)
        {
            self.end_turn(Box::new(classification.into()), actions);
        }
    }
}

impl Protocol for Client {
    fn is_resumable(&self) -> bool {
        self.resumes
    }

    fn set_path_resolver(&mut self, paths: Box<dyn PathResolver + Send>) {
        self.paths = paths;
    }

    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            Input::Started => {
                self.call(Purpose::Initialize, "initialize", &params::initialize(self.is_session), actions);
            }
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) => self.line(bytes, actions),
            Input::Diagnostic(bytes) => {
                if let Some(failure) = self.dialect.diagnostic(bytes, actions) {
                    // The caller requires the missing server, so an answer without it would be wrong.
                    let outcome = failed_turn(failure);
                    self.phase = Phase::Failed(Box::new(outcome.clone()));
                    self.end_turn(Box::new(outcome), actions);
                }
            }
            Input::Interrupt => self.interrupt(actions),
            Input::Command(command) => self.command(command, actions),
            Input::Exited(exit) => self.exited(exit, actions),
            Input::TimerElapsed => self.timer_elapsed(actions),
            Input::Server(_) => {}
        }
    }

    fn may_have_consumed_prompt(&self, _: bool) -> bool {
        self.turn.as_ref().is_none_or(|turn| turn.prompt.is_none())
    }

    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        self.dialect.visible_stderr(stderr)
    }
}

/// Reads the fields of a result. `null` has none; the protocol allows it as the result of `session/load`.
fn fields<T: Default + DeserializeOwned>(result: &RawValue) -> serde_json::Result<T> {
    Ok(serde_json::from_str::<Option<T>>(result.get())?.unwrap_or_default())
}

fn unreadable(what: &str, error: &serde_json::Error) -> Failure {
    Failure::new(ErrorCode::Protocol, format!("the agent's response to {what} cannot be read: {error}"))
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
