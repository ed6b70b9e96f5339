//! The protocol of Claude Code's `stream-json` lines, and of the one-shot document.
//!
//! Invariants: each text is emitted once, whether it arrives as deltas, as whole messages or only in the result; every request of the
//! CLI is answered; a line of an unknown type is ignored, and a line that cannot be parsed is a warning.

use super::assembler::MessageAssembler;
use super::edits::Edits;
use super::hooks::Hooks;
use super::outcome::UsageTotals;
use super::plan::TaskList;
use super::session::Session;
use super::tasks::Tasks;
use super::wire::{
    ControlCancelLine, ControlResponseLine, DeltaKind, InitLine, InitServer, Line, LineKind as Kind, MessageLine,
    RateLimitLine, ResultLine, StreamEvent, StreamEventKind,
};
use super::{control, credential, failure, notices, one_shot};
use crate::agent::content::ContentKind;
use crate::agent::line;
use crate::agent::line_shape::LineShape;
use crate::agent::mcp::Health;
use crate::bounded::{Bounded, Ids};
use crate::protocol::{Action, ExitReport, Input, ProcessAction, Protocol, SessionAction};
use teamster_types::event::{Event, Init, McpServerState, MessageId, ToolId, ToolResult, Warning, WarningCode};
use teamster_types::request::{Conversation, RequestError, RunRequest};

mod background;
mod messages;
mod rejected_key;
mod session;
mod session_start;
mod system;

type Actions = Vec<Action>;

/// The protocol of a run or a session.
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about the stream")]
pub(super) struct StreamJson {
    /// The lines to write at the start.
    first_lines: Vec<Vec<u8>>,
    /// Whether the CLI reads requests from standard input. A one-shot run reads only its prompt.
    is_live: bool,
    /// The id of the session to resume.
    expected_session: Option<String>,
    /// Whether the CLI may use another system prompt than the requested one: that of the session's first run.
    may_keep_system_prompt: bool,
    servers: Health,
    /// The message that is being streamed.
    message: Option<MessageAssembler>,
    /// The last delta of the main thread that was read as JSON.
    last_delta: Option<DeltaShape>,
    /// The messages of `assistant` lines, by uuid. The CLI names these if it replaces them.
    lines: Bounded<String, MessageId>,
    /// Calls of tools that the vendor runs. The CLI may not print their results.
    server_tools: Ids<ToolId>,
    api_error: Option<String>,
    /// The status of the last `rate_limit_event`.
    rate_limit: Option<String>,
    has_emitted_text: bool,
    /// Whether a change of the model within the turn was reported, or requested by the caller.
    is_model_change_known: bool,
    hooks: Hooks,
    tasks: Tasks,
    /// Whether the turn's `system/init` was read, or its session is known from another line.
    has_init: bool,
    /// The source of the API key, as the CLI reports it.
    key_source: Option<String>,
    plan: TaskList,
    totals: UsageTotals,
    phase: Phase,
    /// The edits that the permission mode allows.
    edits: Edits,
    /// Present in a session.
    session: Option<Session>,
}

/// A delta of the main thread. Most deltas differ from the one before only in their text and their uuid.
struct DeltaShape {
    shape: LineShape,
    index: u32,
    kind: ContentKind,
}

impl DeltaShape {
    /// Returns the shape of a line whose event appends a text.
    fn of(line: &str, event: &StreamEvent<'_>) -> Option<Self> {
        let (kind, text) = event.delta.as_ref()?.content.as_ref()?;
        let kind = match kind {
            DeltaKind::Text => ContentKind::Text,
            DeltaKind::Thinking => ContentKind::Thinking,
            DeltaKind::InputJson => return None,
        };
        let index = event.index.filter(|_| event.kind == StreamEventKind::ContentBlockDelta)?;
        Some(Self { shape: LineShape::of(line, text, Some("uuid"))?, index, kind })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No result has been read.
    Open,
    /// A result has been read.
    Answered,
    /// Another session than the requested one answered, or a required MCP server did not start. All further lines are ignored.
    Rejected,
}

impl StreamJson {
    /// Creates the protocol of a run: a session of one turn, or a one-shot run.
    pub(super) fn new(request: &RunRequest, servers: Health) -> Result<Self, RequestError> {
        let first_lines = if one_shot::is_one_shot(request) {
            Vec::new()
        } else {
            let prompt = control::user_message(&request.prompt, &request.attachments, request.prompt_mode)?;
            vec![control::initialize(request), prompt]
        };
        Ok(Self::with(first_lines, request, servers, None))
    }

    /// Creates the protocol of a session, whose prompts arrive turn by turn.
    pub(super) fn session(request: &RunRequest, servers: Health) -> Self {
        let session = Session::new(request);
        Self::with(vec![control::initialize(request)], request, servers, Some(session))
    }

    fn with(first_lines: Vec<Vec<u8>>, request: &RunRequest, servers: Health, session: Option<Session>) -> Self {
        let expected_session = match &request.conversation {
            Conversation::Resume(id) => Some(id.as_str().to_owned()),
            _ => None,
        };
        Self {
            is_live: !first_lines.is_empty(),
            first_lines,
            expected_session,
            may_keep_system_prompt: one_shot::may_keep_system_prompt(request),
            servers,
            message: None,
            last_delta: None,
            lines: Bounded::default(),
            server_tools: Ids::default(),
            api_error: None,
            rate_limit: None,
            has_emitted_text: false,
            is_model_change_known: false,
            hooks: Hooks::default(),
            tasks: Tasks::default(),
            totals: UsageTotals::new(request),
            has_init: false,
            key_source: None,
            plan: TaskList::default(),
            phase: Phase::Open,
            edits: Edits::new(request),
            session,
        }
    }

    fn object(&mut self, text: &str, actions: &mut Actions) -> serde_json::Result<()> {
        // The document of a batch run contains several lines.
        if self.phase == Phase::Rejected {
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_str(text)?;
        let parent = line.parent_tool_use_id.as_deref();
        if let (Some(parent), Some(background)) = (parent, self.background())
            && background.is_in_background(parent)
        {
            actions.push(Action::Alive);
            return Ok(());
        }
        if !self.has_init && !self.start_without_init(&line, actions) {
            return Ok(());
        }
        match (line.kind, line.subtype.as_deref()) {
            (Kind::StreamEvent, _) => {
                if let Some(event) = &line.event {
                    self.stream_event(event, parent, actions)?;
                    if parent.is_none() {
                        self.last_delta = DeltaShape::of(text, event).or(self.last_delta.take());
                    }
                }
            }
            (Kind::Assistant, _) => self.assistant(&serde_json::from_str(text)?, actions)?,
            (Kind::User, _) => {
                let line: MessageLine<'_> = serde_json::from_str(text)?;
                if let Some(uuid) = line.uuid.as_deref().filter(|_| line.is_replay) {
                    self.echoed(uuid, actions);
                }
                let before = actions.len();
                Self::user(&line, actions);
                self.note_results(actions.get(before..).unwrap_or_default());
                actions.extend(self.plan.answered(&line).map(|plan| Action::Emit(Event::Plan(plan))));
            }
            (Kind::System, Some("init")) => self.init(serde_json::from_str(text)?, actions),
            (Kind::System, subtype) => self.system(subtype.unwrap_or_default(), &serde_json::from_str(text)?, actions),
            (Kind::Result, _) => self.result(serde_json::from_str(text)?, actions),
            (Kind::RateLimitEvent, _) => {
                let line: RateLimitLine = serde_json::from_str(text)?;
                actions.push(Action::Emit(notices::rate_limit(&line.rate_limit_info)));
                self.rate_limit = Some(line.rate_limit_info.status);
            }
            (Kind::ControlRequest, _) => {
                self.control_request(serde_json::from_str(text)?, actions);
            }
            (Kind::ControlCancelRequest, _) => {
                let line: ControlCancelLine = serde_json::from_str(text)?;
                let requests = self.session.as_mut().map(|session| &mut session.requests);
                actions.extend(requests.and_then(|requests| requests.withdraw(&line.request_id)));
            }
            (Kind::ControlResponse, _) => {
                let line: ControlResponseLine = serde_json::from_str(text)?;
                Self::control_response(line.response, actions);
            }
            // Heartbeats are no sign of progress: `tool_progress` only counts the seconds of a tool, even if the tool hangs.
            (Kind::KeepAlive | Kind::ToolProgress, _) => {}
            _ => actions.push(Action::Alive),
        }
        Ok(())
    }

    fn init(&mut self, line: InitLine, actions: &mut Actions) {
        if self.refuses(&line.session_id, actions) {
            return;
        }
        self.has_init = true;
        if let Some(cwd) = &line.cwd {
            self.edits.add_cwd(cwd);
        }
        let servers = line.mcp_servers.unwrap_or_default();
        if let Some(version) = &line.claude_code_version {
            self.totals.counters.set_version(version);
        }
        let mut init = Init::new("claude", line.session_id.into());
        init.credential = line.api_key_source.as_deref().map(credential::reported);
        self.key_source = line.api_key_source;
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
        if self.totals.count_turn() {
            self.failed_servers(&servers, actions);
        }
    }

    /// Reports servers that did not start. The CLI reports them only here, before the model is called.
    fn failed_servers(&mut self, servers: &[InitServer], actions: &mut Actions) {
        let mut required = None;
        for server in servers {
            if let Some(reason) = notices::mcp_server(&server.status) {
                let failure = self.servers.failed(&server.name, &server.status, &reason, actions);
                required = required.or(failure);
            }
        }
        if let Some(failure) = required {
            Health::end(failure, actions);
            self.phase = Phase::Rejected;
        }
    }

    fn result(&mut self, mut line: ResultLine<'_>, actions: &mut Actions) {
        for (tool_id, ()) in self.server_tools.take() {
            // The vendor ran the tool. The CLI does not print its result.
            let result = ToolResult::new(tool_id, String::new(), None);
            actions.push(Action::Emit(Event::ToolResult(Box::new(result))));
        }
        let api_error = self.api_error.take();
        let (rate_limit, hooks) = (self.rate_limit.as_deref(), &self.hooks);
        let before = failure::Before { api_error: api_error.as_deref(), rate_limit, hooks };
        let classification = failure::of_result(&line, before);
        actions.extend(self.hooks.warning(&line).map(|warning| Action::Emit(warning.into())));
        if self.may_keep_system_prompt && line.result_index.is_some() {
            actions.push(warning(WarningCode::OptionIgnored, one_shot::KEPT_SYSTEM_PROMPT.to_owned()));
        }
        if let Some(text) = line.result.filter(|_| classification.is_none() && !self.has_emitted_text) {
            // The document has no messages, or the answer is only structured output.
            let id = MessageId::from(line.uuid.as_deref().unwrap_or("result"));
            self.emit_text(ContentKind::Text, &text.to_text(), id, None, actions);
        }
        for denial in &mut line.permission_denials {
            denial.tool_name = self.servers.names.rule(&denial.tool_name);
        }
        actions.push(Action::Outcome(Box::new(self.totals.outcome(line, classification))));
        if self.session.as_ref().is_some_and(|session| session.has_turn_budget) {
            actions.push(Action::Session(SessionAction::RestartProcess));
        }
        self.phase = Phase::Answered;
        match &mut self.session {
            Some(_) => self.turn_ended(actions),
            None if self.is_live => actions.push(Action::Process(ProcessAction::CloseStdin)),
            None => {}
        }
    }
}

impl Protocol for StreamJson {
    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            Input::Started => {
                actions.extend(
                    std::mem::take(&mut self.first_lines)
                        .into_iter()
                        .map(|value| Action::Process(ProcessAction::Write(value))),
                );
            }
            Input::Line(_) if self.phase == Phase::Rejected => {}
            Input::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Input::Line(bytes) if !self.is_due(bytes, actions) => {}
            Input::Line(bytes) => self.line(bytes, actions),
            Input::Interrupt if self.is_live => {
                actions.push(Action::Process(ProcessAction::Write(control::interrupt())));
            }
            Input::Interrupt => actions.push(Action::Process(ProcessAction::Interrupt)),
            Input::Command(command) => self.command(command, actions),
            Input::Diagnostic(_) | Input::Server(_) | Input::TimerElapsed => {}
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }

    fn supports_steering(&self) -> bool {
        // If the CLI starts turns by itself, it would be unknown which turn consumes a prompt that arrives late.
        self.session.as_ref().is_some_and(|session| session.background.is_none())
    }
}

impl StreamJson {
    fn line(&mut self, bytes: &[u8], actions: &mut Actions) {
        if self.phase != Phase::Rejected
            && let Some(DeltaShape { shape, index, kind }) = &self.last_delta
            && let Some(text) = shape.text(bytes)
        {
            let (index, kind) = (*index, *kind);
            return self.text_delta(index, kind, text, None, actions);
        }
        // `--output-format json --verbose` gives every line in one array.
        let read = line::each_json(bytes, |text| self.object(text, actions));
        if let Err(error) = read {
            let message = format!("skipped a line that does not match the protocol ({error})");
            let warning = Warning::new(WarningCode::MalformedLine, message);
            actions.push(Action::Emit(warning.with("line", line::excerpt(bytes)).into()));
        }
    }

    fn exited(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        if self.phase == Phase::Answered {
            actions.extend(self.tasks.take().map(|warning| Action::Emit(warning.into())));
        }
        if self.phase == Phase::Open
            && let Some(classification) = failure::of_exit(exit)
        {
            actions.push(Action::Outcome(Box::new(classification.into())));
        }
    }
}

fn warning(code: WarningCode, message: String) -> Action {
    Action::Emit(Warning::new(code, message).into())
}
