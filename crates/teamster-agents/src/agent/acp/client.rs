//! The state machine of a client: opens a session, and takes its turns.
//!
//! Invariants: nothing is asked of the model before the session is as it was asked for; a request of the agent is always
//! answered; what an old session replays is told nobody; a turn has one outcome.

mod opening;
mod requests;
mod turns;
mod updates;

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use self::turns::failed_turn;
use super::calls::Calls;
use super::dialect::Dialect;
use super::dialog::Dialog;
use super::settings::{Setting, Settings};
use super::speech::Speech;
use super::wire::{AuthMethod, Info, PromptCapabilities};
use super::{ask, failure};
use crate::agent::line;
use crate::agent::rpc::{Caller, Header, Message, RpcError, read};
use crate::protocol::{Action, Command, ExitReport, Input, Outcome, Protocol};
use crate::rules::{PathResolver, TextOnly, ToolRules};
use teamster_types::event::{ErrorCode, Event, Failure, SessionId, Warning, WarningCode};
use teamster_types::request::{Conversation, McpServer, OutputMode, PermissionMode, Prompt, RequestError, RunRequest};

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
    /// Whether the agent offers to resume its sessions.
    resumes: bool,
    phase: Phase,
    /// Calls that change how the session is set: no turn goes to the model before they are answered.
    settling: u32,
    settings: Settings,
    turn: Option<Turn>,
    speech: Speech,
    calls: Calls,
    dialog: Dialog,
    /// What they deny is denied in every mode.
    rules: ToolRules,
    /// How the rules resolve paths.
    files: Box<dyn PathResolver + Send>,
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
                "the protocol does not identify the newest session; resume one by its id",
            );
        }
        for (name, server) in &servers {
            ask::check_mcp_server(dialect.agent(), name, server)?;
        }
        let rules = ToolRules::read(&request.permissions, Some(&cwd))?;
        let mut prompt = Prompt::from(request.prompt.clone());
        prompt.attachments.clone_from(&request.attachments);
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
            resumes: false,
            phase: Phase::Opening,
            settling: 0,
            settings: Settings::default(),
            turn: (!is_session).then(|| Turn::new(prompt, request.permissions.mode, cost)),
            speech: Speech::new(request.output == OutputMode::Messages),
            calls: Calls::default(),
            dialog: Dialog::default(),
            rules,
            files: Box::new(TextOnly),
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
                Some(purpose) => self.answered(purpose, outcome, actions),
                // Of somebody else, or said twice.
                None => actions.push(Action::Alive),
            },
        }
        Ok(())
    }

    fn answered(&mut self, purpose: Purpose, outcome: Result<&RawValue, RpcError>, actions: &mut Actions) {
        if !matches!(purpose, Purpose::Prompt) {
            actions.push(Action::Alive);
        }
        if matches!(purpose, Purpose::Set(_) | Purpose::SetModel | Purpose::Fence) {
            self.settling = self.settling.saturating_sub(1);
        }
        match (purpose, outcome) {
            (Purpose::Initialize, Ok(result)) => match fields(result) {
                Ok(welcome) => self.welcomed(welcome, actions),
                Err(error) => self.refuse(unreadable("initialize", &error), actions),
            },
            (Purpose::Open { old }, Ok(result)) => match fields(result) {
                Ok(opened) => self.opened(old, opened, actions),
                Err(error) => self.refuse(unreadable("a session", &error), actions),
            },
            (Purpose::Prompt, Ok(result)) => match fields(result) {
                Ok(answer) => self.ended(&answer, actions),
                Err(error) => self.end_turn(Box::new(failed_turn(unreadable("the prompt", &error))), actions),
            },
            (Purpose::Prompt, Err(error)) => self.failed(&error, actions),
            (Purpose::SetModel, Err(error)) => {
                let why = failure::of_answer("the model", &error).failure.message;
                let text = format!("the model was not changed: {}", why.as_str());
                actions.push(warning(WarningCode::OptionIgnored, text));
            }
            (Purpose::Initialize, Err(error)) => self.refuse_for("initialize", &error, actions),
            (Purpose::Open { .. }, Err(error)) => self.refuse_for("a session", &error, actions),
            (Purpose::Set(what), Err(error)) => self.refuse_for(what, &error, actions),
            (Purpose::Set(_) | Purpose::SetModel | Purpose::Fence, _) => {}
        }
        self.go_on(actions);
    }

    fn set(&mut self, purpose: Purpose, (method, mut params): Setting, actions: &mut Actions) {
        if let (Phase::Open(session), Some(fields)) = (&self.phase, params.as_object_mut()) {
            fields.insert("sessionId".to_owned(), session.wire.as_str().into());
        }
        self.settling += 1;
        self.call(purpose, method, &params, actions);
    }

    fn command(&mut self, command: Command<'_>, actions: &mut Actions) {
        match command {
            Command::Send { prompt, .. } => {
                self.calls.next_turn();
                self.speech.next_turn();
                self.turn = Some(Turn::new(prompt.clone(), self.wishes.mode, self.cost.or(self.cost_before)));
                self.go_on(actions);
            }
            Command::Answer { request, answer } => {
                if let Some(asked) = self.dialog.take(request) {
                    self.reply_with(requests::Request::Asked(request.clone()), &asked, answer, actions);
                }
            }
            Command::SetModel(model) => match self.settings.set_model(model) {
                _ if !matches!(self.phase, Phase::Open(_)) => actions.push(Action::RestartProcess),
                Ok(setting) => self.set(Purpose::SetModel, setting, actions),
                Err(why) => {
                    actions.push(warning(
                        WarningCode::OptionIgnored,
                        format!("the model was not changed: {}", why.as_str()),
                    ));
                }
            },
            Command::SetPermissionMode(_) if self.dialect.is_set_at_start() => actions.push(Action::RestartProcess),
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
                self.phase = Phase::Refused(Box::new(failed_turn(Failure::new(ErrorCode::InvalidRequest, why))));
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

impl Protocol for Client {
    fn is_resumable(&self) -> bool {
        self.resumes
    }

    fn set_path_resolver(&mut self, files: Box<dyn PathResolver + Send>) {
        self.files = files;
    }

    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            Input::Started => self.call(Purpose::Initialize, "initialize", &ask::initialize(), actions),
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) => self.line(bytes, actions),
            Input::Diagnostic(bytes) => {
                if let Some(failure) = self.dialect.diagnostic(bytes, actions) {
                    // An answer without what the caller cannot do without is none.
                    let outcome = failed_turn(failure);
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

    fn may_have_consumed_prompt(&self, _: bool) -> bool {
        true
    }

    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        self.dialect.visible_stderr(stderr)
    }
}

/// The fields of an answer; `null` has none, which the protocol lets an agent say to `session/load`.
fn fields<T: Default + DeserializeOwned>(result: &RawValue) -> serde_json::Result<T> {
    Ok(serde_json::from_str::<Option<T>>(result.get())?.unwrap_or_default())
}

fn unreadable(what: &str, error: &serde_json::Error) -> Failure {
    Failure::new(ErrorCode::Protocol, format!("the agent's answer to {what} cannot be read: {error}"))
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
