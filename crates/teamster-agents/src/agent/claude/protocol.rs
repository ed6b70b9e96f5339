//! The state machine over Claude Code's lines: what each line means, in order.
//!
//! Invariants: text is told once, whether it comes as deltas, as whole messages or in the result alone; the CLI's
//! requests are always answered; a line that we do not know is nothing, one that we cannot read is a warning.

use super::edits::Edits;
use super::message::{Streamed, Voice};
use super::outcome::Tally;
use super::wire::{
    ControlCancelLine, ControlResponseLine, InitLine, InitServer, Line, MessageLine, RateLimitLine, ResultLine,
    SystemLine,
};
use super::{control, failure, launch, notices};
use crate::agent::line;
use crate::agent::mcp::Health;
use crate::bounded::{Bounded, Ids};
use crate::protocol::{Action, ExitReport, Input, Outcome, ProcessAction, Protocol, SessionAction};
use teamster_types::event::{
    ErrorCode, Event, Failure, Init, McpServerState, MessageId, ToolId, ToolResult, Warning, WarningCode,
};
use teamster_types::request::{Conversation, RequestError, RunRequest};

mod background;
mod messages;
mod session;

use messages::user;
use session::Session;

type Actions = Vec<Action>;

/// One run of Claude Code.
pub(super) struct Stream {
    /// What is written at the start.
    opening: Vec<Vec<u8>>,
    /// Whether the CLI is spoken to over its standard input.
    speaks: bool,
    /// The session that must answer.
    expected_session: Option<String>,
    servers: Health,
    streamed: Option<Streamed>,
    /// `assistant` lines so far, for withdrawals by uuid.
    lines: Bounded<String, MessageId>,
    /// Calls of tools that the vendor runs itself: their results may never be shown.
    server_tools: Ids<ToolId>,
    api_error: Option<String>,
    /// The status of the last `rate_limit_event`.
    rate_limit: Option<String>,
    text_told: bool,
    tally: Tally,
    phase: Phase,
    /// What the permission mode answers.
    edits: Edits,
    /// Where this is a session.
    session: Option<Session>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No result has been read.
    Open,
    /// A result has been read.
    Answered,
    /// Another session answered than the one asked for, or a server is missing that the run cannot do without: nothing that
    /// it says is meant for the caller.
    Refused,
}

impl Stream {
    /// A run: a session of one turn, or one shot.
    pub(super) fn new(request: &RunRequest, servers: Health) -> Result<Self, RequestError> {
        let opening = if launch::is_one_shot(request) {
            Vec::new()
        } else {
            let prompt = control::user_message(&request.prompt, &request.attachments, request.prompt_mode)?;
            vec![control::initialize(request.schema.as_ref()), prompt]
        };
        Ok(Self::with(opening, request, servers, None))
    }

    /// A session, whose prompts come turn by turn.
    pub(super) fn session(request: &RunRequest, servers: Health) -> Self {
        let session = Session::new(request);
        Self::with(vec![control::initialize(request.schema.as_ref())], request, servers, Some(session))
    }

    fn with(opening: Vec<Vec<u8>>, request: &RunRequest, servers: Health, session: Option<Session>) -> Self {
        let expected_session = match &request.conversation {
            // `--resume` takes a title too; only an id can be compared.
            Conversation::Resume(id) if is_uuid(id.as_str()) => Some(id.as_str().to_owned()),
            _ => None,
        };
        Self {
            speaks: !opening.is_empty(),
            opening,
            expected_session,
            servers,
            streamed: None,
            lines: Bounded::default(),
            server_tools: Ids::default(),
            api_error: None,
            rate_limit: None,
            text_told: false,
            tally: Tally::new(request.schema.is_some()),
            phase: Phase::Open,
            edits: Edits::new(request),
            session,
        }
    }

    fn object(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        // The document of a batch is a list.
        if self.phase == Phase::Refused {
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_str(text)?;
        let parent = line.parent_tool_use_id.as_deref();
        if let (Some(parent), Some(background)) = (parent, self.background())
            && background.is_behind(parent)
        {
            actions.push(Action::Alive);
            return Ok(());
        }
        match (&*line.kind, line.subtype.as_deref()) {
            ("stream_event", _) => {
                if let Some(event) = &line.event {
                    self.stream_event(event, parent, actions);
                }
            }
            ("assistant", _) => self.assistant(&serde_json::from_str(text)?, actions)?,
            ("user", _) => {
                let line: MessageLine<'_> = serde_json::from_str(text)?;
                if let Some(uuid) = line.uuid.as_deref().filter(|_| line.is_replay) {
                    self.echoed(uuid, actions);
                }
                let before = actions.len();
                user(&line, actions);
                self.note_results(actions.get(before..).unwrap_or_default());
            }
            ("system", Some("init")) => self.init(serde_json::from_str(text)?, actions),
            ("system", subtype) => self.system(subtype.unwrap_or_default(), &serde_json::from_str(text)?, actions),
            ("result", _) => self.result(serde_json::from_str(text)?, actions),
            ("rate_limit_event", _) => {
                let line: RateLimitLine = serde_json::from_str(text)?;
                actions.push(Action::Emit(notices::rate_limit(&line.rate_limit_info)));
                self.rate_limit = Some(line.rate_limit_info.status);
            }
            ("control_request", _) => {
                self.asked(serde_json::from_str(text)?, actions);
            }
            ("control_cancel_request", _) => {
                let line: ControlCancelLine = serde_json::from_str(text)?;
                let dialog = self.session.as_mut().map(|session| &mut session.dialog);
                actions.extend(dialog.and_then(|dialog| dialog.withdraw(&line.request_id)));
            }
            ("control_response", _) => {
                let line: ControlResponseLine = serde_json::from_str(text)?;
                Self::answered(line.response, actions);
            }
            // Heartbeats say nothing about the agent's work: the second counts the seconds of a tool, be it stuck or not.
            ("keep_alive" | "tool_progress", _) => {}
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    fn init(&mut self, line: InitLine, actions: &mut Actions) {
        if let Some(expected) = &self.expected_session
            && *expected != line.session_id
        {
            let message = format!("asked to resume session {expected}, but {} answers", line.session_id);
            actions.push(warning(WarningCode::SessionMismatch, message.clone()));
            let failure = Failure::new(ErrorCode::Protocol, message);
            actions.push(Action::Outcome(Box::new(Outcome { failure: Some(failure), ..Outcome::default() })));
            // Before the model is called: an answer without its history is worse than none.
            actions.push(Action::Process(ProcessAction::Stop));
            self.phase = Phase::Refused;
            return;
        }
        if let Some(cwd) = &line.cwd {
            self.edits.learn_cwd(cwd);
        }
        let servers = line.mcp_servers.unwrap_or_default();
        let mut init = Init::new("claude", line.session_id.into());
        init.model = line.model.map(Into::into);
        init.agent_version = line.claude_code_version.map(Into::into);
        init.cwd = line.cwd.map(Into::into);
        init.tools = line.tools.map(|all| all.into_iter().map(Into::into).collect());
        for server in &servers {
            self.servers.names.learn(&server.name);
        }
        let state =
            |server: &InitServer| McpServerState::new(self.servers.names.given(&server.name), server.status.clone());
        init.mcp_servers = Some(servers.iter().map(state).collect());
        actions.push(Action::Emit(Event::Init(Box::new(init))));
        if self.tally.begin_turn() {
            self.failed_servers(&servers, actions);
        }
    }

    /// They are told here alone, before the model is called; the run would go on without their tools.
    fn failed_servers(&mut self, servers: &[InitServer], actions: &mut Actions) {
        let mut lacking = None;
        for server in servers {
            if let Some(reason) = notices::mcp_server(&server.status) {
                let failure = self.servers.failed(&server.name, &server.status, &reason, actions);
                lacking = lacking.or(failure);
            }
        }
        if let Some(failure) = lacking {
            Health::end(failure, actions);
            self.phase = Phase::Refused;
        }
    }

    fn system(&mut self, subtype: &str, line: &SystemLine, actions: &mut Actions) {
        if subtype == "task_notification"
            && let Some(background) = self.background()
        {
            return background.note(Action::Emit(notices::task(line).into()), actions);
        }
        if subtype == "model_refusal_fallback" {
            for uuid in &line.retracted_message_uuids {
                self.withdraw(uuid, actions);
            }
        }
        actions.push(match notices::of_system(subtype, line) {
            Some(warning) => Action::Emit(warning.into()),
            None => Action::Alive,
        });
    }

    fn result(&mut self, mut line: ResultLine, actions: &mut Actions) {
        for (tool_id, ()) in self.server_tools.take() {
            // The vendor ran it and the model went on from its result, which the CLI does not show.
            let result = ToolResult::new(tool_id, String::new(), None);
            actions.push(Action::Emit(Event::ToolResult(Box::new(result))));
        }
        if let Some(text) = line.result.as_deref().filter(|_| !line.is_error && !self.text_told) {
            // A document without messages, or an answer that is structured output alone.
            let id = MessageId::from(line.uuid.as_deref().unwrap_or("result"));
            self.tell(Voice::Text, text, id, None, actions);
        }
        for denial in &mut line.permission_denials {
            denial.tool_name = self.servers.names.rule(&denial.tool_name);
        }
        let api_error = self.api_error.take();
        let before = failure::Before { api_error: api_error.as_deref(), rate_limit: self.rate_limit.as_deref() };
        let judgement = failure::of_result(&line, before);
        actions.push(Action::Outcome(Box::new(self.tally.outcome(line, judgement))));
        if self.session.as_ref().is_some_and(|session| session.has_turn_budget) {
            actions.push(Action::Session(SessionAction::RestartProcess));
        }
        self.phase = Phase::Answered;
        match &mut self.session {
            Some(_) => self.turn_over(actions),
            None if self.speaks => actions.push(Action::Process(ProcessAction::CloseStdin)),
            None => {}
        }
    }
}

impl Protocol for Stream {
    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            Input::Started => {
                actions.extend(
                    std::mem::take(&mut self.opening)
                        .into_iter()
                        .map(|value| Action::Process(ProcessAction::Write(value))),
                );
            }
            Input::Line(_) if self.phase == Phase::Refused => {}
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) if !self.is_due(bytes, actions) => {}
            Input::Line(bytes) => self.line(bytes, actions),
            Input::Interrupt if self.speaks => {
                actions.push(Action::Process(ProcessAction::Write(control::interrupt())));
            }
            Input::Interrupt => actions.push(Action::Process(ProcessAction::Interrupt)),
            Input::Command(command) => self.command(command, actions),
            Input::Diagnostic(_) | Input::Server(_) => {}
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }

    fn supports_steering(&self) -> bool {
        // Where the CLI begins turns by itself, nobody could tell in which one it hears what was said too late.
        self.session.as_ref().is_some_and(|session| session.background.is_none())
    }
}

impl Stream {
    fn line(&mut self, bytes: &[u8], actions: &mut Actions) {
        // `--output-format json --verbose` gives every line in one array.
        let read = line::each_json(bytes, |text| self.object(text, actions));
        if let Err(error) = read {
            let message = format!("skipped a line that is not of the protocol ({error})");
            let warning = Warning::new(WarningCode::MalformedLine, message);
            actions.push(Action::Emit(warning.with("line", line::excerpt(bytes)).into()));
        }
    }

    fn exited(&self, exit: ExitReport<'_>, actions: &mut Actions) {
        if self.phase == Phase::Open
            && let Some(judgement) = failure::of_exit(exit)
        {
            actions.push(Action::Outcome(Box::new(judgement.into())));
        }
    }
}

fn warning(code: WarningCode, message: String) -> Action {
    Action::Emit(Warning::new(code, message).into())
}

fn is_uuid(id: &str) -> bool {
    id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
