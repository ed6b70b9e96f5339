//! The state machine over OpenCode's server: the replies to our calls, the caller's commands, and the ends.
//!
//! Invariants: a prompt is sent once, and when the events of its session are read; a run is over with its first turn; a turn
//! has one outcome; nobody is asked in a run.

use std::collections::VecDeque;

use super::super::{failure, logs, reason};
use super::calls::{Calls, Purpose};
use super::dialog::Dialog;
use super::opening::Opening;
use super::prompt::Manner;
use super::turn::Turn;
use super::voices::Voices;
use crate::agent::failure::Classification;
use crate::agent::line;
use crate::agent::mcp::Health;
use crate::bounded::Bounded;
use crate::protocol::{
    Action, CallId, Command, ExitReport, Input, Outcome, ProcessAction, Protocol, ServerInput, SessionAction,
};
use serde_json::Value;
use teamster_types::event::{
    ErrorCode, Event, Failure, Init, SessionId, StopReason, ToolId, ToolKind, Warning, WarningCode,
};
use teamster_types::json::RawJson;
use teamster_types::request::{Attachment, Conversation, OutputMode, Prompt, RequestError, RunRequest};
use teamster_types::text::UntrustedText;

pub(super) type Actions = Vec<Action>;

/// A run or a session of OpenCode by its server.
#[derive(Debug)]
pub(in super::super) struct Stream {
    form: Form,
    pub(super) manner: Manner,
    /// Parts are told when they are whole.
    pub(super) whole: bool,
    max_turns: Option<u64>,
    max_budget_usd: Option<f64>,
    /// What is left of the session's budget.
    session_budget_usd: Option<f64>,
    pub(super) conversation: Conversation,
    pub(super) health: Health,
    /// Whether the request names MCP servers.
    pub(super) has_servers: bool,
    pub(super) calls: Calls,
    pub(super) opening: Opening,
    pub(super) state: State,
    /// Who the session is, when that is known.
    pub(super) init: Option<Init>,
    /// The sessions of subagents, with the calls that started them, as far as they have been told.
    pub(super) children: Bounded<String, Option<ToolId>>,
    /// Calls of tools that run, by their parts.
    pub(super) tools: Bounded<String, Called>,
    pub(super) voices: Voices,
    pub(super) dialog: Dialog,
    pub(super) turn: Option<Turn>,
    /// A prompt that is to be sent when there is a session.
    waiting: Option<Value>,
    /// The agent has shown that it has the last prompt.
    pub(super) taken: bool,
    /// The newest message of earlier turns: the ids of later ones are greater.
    pub(super) past: Option<String>,
    pub(super) logs: Logs,
}

/// A call of a tool, as far as it has been told.
#[derive(Debug)]
pub(super) struct Called {
    /// Its id at the provider.
    pub(super) call: Option<String>,
    pub(super) name: String,
    pub(super) server: Option<UntrustedText>,
    pub(super) kind: ToolKind,
    pub(super) id: ToolId,
    pub(super) input: Option<RawJson>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Run,
    Session,
}

/// How far it is.
#[derive(Debug)]
pub(super) enum State {
    Opening,
    Ready,
    /// No turn can succeed, for this reason.
    Failed(Classification),
    /// A run has had its last word.
    Closed,
}

impl Stream {
    /// A run: one turn.
    pub(in super::super) fn run(request: &RunRequest, health: Health) -> Result<Self, RequestError> {
        let mut stream = Self::new(request, health, Form::Run)?;
        stream.waiting = Some(stream.manner.body(&request.prompt, &request.attachments)?);
        stream.turn = Some(Turn::default());
        Ok(stream)
    }

    /// A session, whose prompts come turn by turn.
    pub(in super::super) fn session(request: &RunRequest, health: Health) -> Result<Self, RequestError> {
        Self::new(request, health, Form::Session)
    }

    fn new(request: &RunRequest, health: Health, form: Form) -> Result<Self, RequestError> {
        Ok(Self {
            form,
            manner: Manner::of(request)?,
            whole: request.output != OutputMode::Stream,
            max_turns: request.max_turns.map(|turns| u64::from(turns.get())),
            max_budget_usd: request.max_budget_usd,
            session_budget_usd: request.max_session_budget_usd,
            conversation: request.conversation.clone(),
            health,
            has_servers: !request.mcp_servers.is_empty(),
            calls: Calls::default(),
            opening: Opening::default(),
            state: State::Opening,
            init: None,
            children: Bounded::default(),
            tools: Bounded::default(),
            voices: Voices::default(),
            dialog: Dialog::default(),
            turn: None,
            waiting: None,
            taken: false,
            past: None,
            logs: Logs::default(),
        })
    }

    /// The session, when there is one.
    pub(super) fn id(&self) -> Option<&SessionId> {
        self.init.as_ref().map(|init| &init.session_id)
    }

    /// Whether nobody can be asked.
    pub(super) fn is_run(&self) -> bool {
        self.form == Form::Run
    }

    /// Tells the turn who answers it.
    pub(super) fn say_hello(&self, actions: &mut Actions) {
        if self.turn.is_some() {
            actions.extend(self.init.clone().map(|init| Action::Emit(Event::Init(Box::new(init)))));
        }
    }

    pub(super) fn send_waiting(&mut self, actions: &mut Actions) {
        let (Some(session), Some(body)) = (self.id().cloned(), self.waiting.take()) else { return };
        actions.push(self.calls.prompt(&session, &body));
    }

    fn send(&mut self, text: &str, attachments: &[Attachment], actions: &mut Actions) {
        (self.turn, self.taken) = (Some(Turn::default()), false);
        self.say_hello(actions);
        match self.manner.body(text, attachments) {
            Ok(body) => self.waiting = Some(body),
            Err(error) => {
                let failure = Failure::new(ErrorCode::InvalidRequest, error.to_string());
                return self.end(Outcome { failure: Some(failure), ..Outcome::default() }, actions);
            }
        }
        match &self.state {
            State::Ready => self.send_waiting(actions),
            State::Failed(judgement) => {
                let judgement = judgement.clone();
                self.fail(judgement, actions);
            }
            State::Opening => actions.extend(self.opening.held.take()),
            State::Closed => {}
        }
    }

    fn command(&mut self, command: Command<'_>, actions: &mut Actions) {
        match command {
            Command::Send { prompt: Prompt { text, attachments, .. }, .. } => self.send(text, attachments, actions),
            Command::Answer { request, answer } => self.dialog.answer(request, answer, &mut self.calls, actions),
            Command::SetModel(model) => {
                if let Err(error) = self.manner.set_model(model) {
                    let text = format!("the model was not changed: {error}");
                    actions.push(Action::Emit(Warning::new(WarningCode::OptionIgnored, text).into()));
                }
            }
            // The rules stand in the configuration.
            Command::SetPermissionMode(_) => actions.push(Action::Session(SessionAction::RestartProcess)),
            // It handles no signal but by its end, and has no other way: what was said is written down.
            Command::Close => actions.push(Action::Process(ProcessAction::Stop)),
            Command::Steer { id, prompt } => self.steer(id, prompt, actions),
        }
    }

    fn reply(&mut self, call: CallId, purpose: Purpose, status: u16, body: &[u8], actions: &mut Actions) {
        actions.push(Action::Alive);
        self.taken |= purpose == Purpose::Prompt;
        match (purpose, status) {
            (Purpose::Directory, 200) => self.place(body, actions),
            (Purpose::Newest, 200) => self.newest(body, actions),
            (Purpose::Open, 200) => self.opened(body, actions),
            (Purpose::Servers, 200) => self.servers(body, actions),
            (Purpose::Found, 200) => self.found(body, actions),
            // What comes of them is told by events; and what was answered may be over.
            (Purpose::Prompt | Purpose::Steer, 200..=299) | (Purpose::Abort | Purpose::Answer, _) => {}
            (Purpose::Steer, _) => self.not_taken(call, actions),
            _ => self.refused(purpose, status, body, actions),
        }
    }

    /// Asks the agent to stop, once, and not before it works on the prompt and has got what was said within the turn: an abort that
    /// comes earlier would stop nothing of it.
    pub(super) fn abort_if_wanted(&mut self, actions: &mut Actions) {
        let (Some(session), Some(turn)) = (self.id().cloned(), &mut self.turn) else { return };
        let wanted = turn.interrupted || turn.limit.is_some();
        let is_heard = turn.has_begun() && !turn.steering.is_unseen();
        if wanted && is_heard && !std::mem::replace(&mut turn.is_aborted, true) {
            actions.push(self.calls.abort(&session));
        }
    }

    fn interrupt(&mut self, actions: &mut Actions) {
        let Some(turn) = &mut self.turn else { return };
        turn.interrupted = true;
        let sent = self.waiting.take().is_none() && matches!(self.state, State::Ready);
        if sent {
            return self.abort_if_wanted(actions);
        }
        let outcome = Outcome { interrupted: true, ..turn.tally.outcome(Some(StopReason::Cancelled)) };
        self.end(outcome, actions);
    }

    /// A call of the model has ended for this reason.
    pub(super) fn step_ended(&mut self, reason: &str, actions: &mut Actions) {
        let max_turns = self.max_turns;
        let max_budget_usd = self.max_budget_usd.into_iter().chain(self.session_budget_usd).reduce(f64::min);
        let Some(turn) = &mut self.turn else { return };
        let unfinished = turn.step(reason);
        if !Turn::would_go_on(reason) || turn.limit.is_some() {
            return;
        }
        // The agent's own limit of steps is only a request to the model (max_steps), and it knows none of cost.
        turn.limit = if let Some(turns) = max_turns.filter(|turns| turn.tally.turns >= *turns) {
            Some((reason::too_many_turns(turns), Some(StopReason::MaxTurns)))
        } else if let Some(budget) = max_budget_usd.filter(|budget| turn.tally.cost >= Some(*budget)) {
            Some((reason::too_expensive(budget), None))
        } else {
            unfinished.map(|failure| (failure, None))
        };
        if turn.limit.is_some() && self.is_run() {
            return self.finish(actions);
        }
        self.abort_if_wanted(actions);
    }

    /// The turn is over.
    pub(super) fn finish(&mut self, actions: &mut Actions) {
        let Some(turn) = &self.turn else { return };
        let outcome = turn.outcome(self.manner.has_schema(), &self.logs.text(), actions);
        self.end(outcome, actions);
    }

    fn end(&mut self, mut outcome: Outcome, actions: &mut Actions) {
        let mut turn = self.turn.take();
        let cost = turn.as_ref().and_then(|turn| turn.tally.cost).unwrap_or_default();
        self.session_budget_usd = self.session_budget_usd.map(|left| (left - cost).max(0.0));
        let unseen = turn.iter_mut().flat_map(|turn| turn.steering.unseen());
        actions.extend(unseen.map(|id| Action::Session(SessionAction::Steered { id, heard: false })));
        self.past = turn.and_then(|turn| turn.newest().map(str::to_owned)).or(self.past.take());
        self.waiting = None;
        self.voices = Voices::default();
        self.tools.take();
        self.children.take();
        self.dialog.clear(actions);
        outcome.session_id = self.id().cloned();
        actions.push(Action::Outcome(Box::new(outcome)));
        if self.is_run() {
            self.state = State::Closed;
            actions.push(Action::Process(ProcessAction::Shutdown));
        }
    }

    /// Nothing can come of this any more.
    pub(super) fn fail(&mut self, judgement: Classification, actions: &mut Actions) {
        if let Some(turn) = &self.turn {
            let mut outcome = turn.tally.outcome(None);
            judgement.clone().apply_to(&mut outcome);
            self.end(outcome, actions);
            if !self.is_run() {
                actions.push(Action::Session(SessionAction::RestartProcess));
            }
        }
        if !matches!(self.state, State::Closed) {
            self.state = State::Failed(judgement);
        }
    }

    fn unreachable(&mut self, purpose: Option<Purpose>, why: &str, actions: &mut Actions) {
        // A stop that is not heard is followed by force.
        if purpose == Some(Purpose::Abort) {
            return;
        }
        let failure = Failure::new(ErrorCode::Connection, format!("the CLI's own server: {why}"));
        self.fail(Classification { failure, row: None }, actions);
    }

    fn server(&mut self, said: ServerInput<'_>, actions: &mut Actions) {
        match said {
            ServerInput::Reply { call, status, body } => {
                if let Some(purpose) = self.calls.answered(call) {
                    self.reply(call, purpose, status, body, actions);
                }
            }
            ServerInput::Event(data) => {
                if let Err(error) = line::with_json(data, |text| self.event(text, actions)) {
                    let message = format!("skipped an event that is not of the protocol ({error})");
                    let warning = Warning::new(WarningCode::MalformedLine, message);
                    actions.push(Action::Emit(warning.with("line", line::excerpt(data)).into()));
                }
            }
            ServerInput::Unreachable { call: Some(call), why } => {
                if let Some(purpose) = self.calls.answered(call) {
                    self.unreachable(Some(purpose), why, actions);
                }
            }
            ServerInput::Unreachable { call: None, why } => self.unreachable(None, why, actions),
        }
    }

    fn diagnostic(&mut self, line: &[u8], actions: &mut Actions) {
        let Ok(line) = std::str::from_utf8(line) else { return };
        self.logs.note(line);
        let Some((server, status, reason)) = logs::failed_server(line) else { return };
        if let Some(failure) = self.health.failed(server, status, reason, actions) {
            self.fail(Classification { failure, row: None }, actions);
        }
    }

    fn exited(&mut self, exit: ExitReport<'_>, actions: &mut Actions) {
        let Some(turn) = &self.turn else { return };
        let mut outcome = turn.tally.outcome(None);
        if turn.interrupted {
            (outcome.interrupted, outcome.stop_reason) = (true, Some(StopReason::Cancelled));
        } else {
            match failure::of_exit(exit) {
                Some(judgement) => judgement.apply_to(&mut outcome),
                None => outcome.failure = Some(reason::unexplained(exit.code, exit.signal, None, false)),
            }
        }
        self.end(outcome, actions);
    }
}

impl Protocol for Stream {
    fn supports_steering(&self) -> bool {
        !self.is_run()
    }

    /// Its events come by another way than its replies, some of them long after what they tell.
    fn may_have_consumed_prompt(&self, _: bool) -> bool {
        self.taken
    }

    fn handle(&mut self, input: Input<'_>, actions: &mut Actions) {
        match input {
            _ if matches!(self.state, State::Closed) => {}
            Input::Started => {}
            Input::Line(bytes) => self.line(&String::from_utf8_lossy(bytes), actions),
            Input::Diagnostic(line) => self.diagnostic(line, actions),
            Input::Server(said) => self.server(said, actions),
            Input::Interrupt => self.interrupt(actions),
            Input::Command(command) => self.command(command, actions),
            Input::Exited(exit) => self.exited(exit, actions),
        }
    }
}

/// The last errors of the log, in which some reasons stand alone.
#[derive(Debug, Default)]
pub(super) struct Logs(VecDeque<String>);

impl Logs {
    fn note(&mut self, line: &str) {
        if logs::value(line, "level") == Some("ERROR") {
            if self.0.len() == 16 {
                self.0.pop_front();
            }
            self.0.push_back(line.chars().take(2000).collect());
        }
    }

    pub(super) fn text(&self) -> String {
        self.0.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}
