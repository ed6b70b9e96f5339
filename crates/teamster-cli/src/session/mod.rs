//! `teamster session`: a session for a program, which reads one command per line and prints one event per line.
//!
//! One loop handles commands, events of the running turn and signals, and passes lines to the writer. An event is read
//! only when no line waits. So a slow reader delays the events inside the library, but not commands and signals.
//!
//! Invariants: each accepted turn ends with one `done`; a rejected command causes one `error`, and the session continues;
//! once no answer can arrive, requests of the agent are denied.

mod answer;
mod command;
mod ending;
mod input;
mod output;
mod turns;

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::time::Duration;

use teamster::command::{Applied, CommandError};
use teamster::event::RequestId;
use teamster::request::{Decision, Limits, SessionCommand};
use teamster::{Event, SendError, Session, StampedEvent};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use self::answer::{PendingAnswer, answered};
use self::command::{Origin, Rejection};
use self::ending::{close, exit_code_after_writing, wait_until_written};
use self::input::{Content, Line};
use self::output::ReaderClosed;
use self::turns::{AGENT_TURN_PREFIX, SessionEvent, Steering, Turn, Turns, next_event};
use crate::args::SessionArgs;
use crate::exit;
use crate::option_names;
use crate::plan::{self, SessionPlan, SystemInputs};
use crate::preflight;
use crate::render::write_notice;
use crate::runtime::{self, FINAL_OUTPUT_TIMEOUT, KILLING_NOTICE, STOPPING_NOTICE, report_usage_error};
use crate::signals::{Signal, Signals};
use crate::usage::Journal;

/// The number of lines that may wait for the writer. With more, no command is read.
const WAITING_LINES: usize = 64;

/// Runs the command and returns its exit code.
pub(crate) fn main(args: SessionArgs) -> u8 {
    let background_tasks = args.background_tasks;
    match plan::plan_session(args.conversation, Limits::default().answer, &mut SystemInputs) {
        Ok(mut plan) => {
            plan.request.background_tasks = background_tasks;
            preflight::report(&plan.agent, &plan.request);
            runtime::run_command(runtime::Threads::Main, run_session(plan))
        }
        Err(error) => report_usage_error(&option_names::in_error(&error), error.hint()),
    }
}

async fn run_session(plan: SessionPlan) -> io::Result<u8> {
    let runtime = plan.runtime;
    // Signals are caught before a process is started, so that no signal can leave a process behind.
    let mut signals = Signals::catch()?;
    let (lines, written) = output::start()?;
    let (commands, reader) = (input::start()?, output::watch_reader()?);
    let exit_timeout = plan.request.limits.grace + FINAL_OUTPUT_TIMEOUT;
    let has_agent_turns = plan.request.background_tasks;
    let mut journal = Journal::open(plan.usage_journal, &plan.agent, &plan.request);
    let session = match runtime.open(&plan.agent, plan.request) {
        Ok(session) => session,
        Err(error) => return Ok(report_usage_error(&option_names::in_error(&error), None)),
    };
    let mut conversation = Conversation::new(&session, &mut journal, has_agent_turns);
    let end = conversation.run(commands, &lines, reader, &mut signals, exit_timeout).await;
    let code = if conversation.is_stopped { exit::INTERRUPTED } else { conversation.code };
    drop(conversation);
    drop(lines);
    let code = match end {
        End::Closed => {
            close(session, &mut signals).await;
            wait_until_written(written, &mut signals, code).await
        }
        End::NoReader => {
            drop(session);
            exit_code_after_writing(written.await, exit::NO_READER)
        }
        End::TimedOut => exit::INTERRUPTED,
    };
    journal.close().await;
    // What still runs has had its time.
    runtime.shutdown(Duration::ZERO).await;
    Ok(code)
}

/// The reason for the end of a conversation.
enum End {
    /// Every turn has ended with its `done`.
    Closed,
    /// The reader has closed standard output.
    NoReader,
    /// After a second SIGINT the last lines were not read in time.
    TimedOut,
}

/// Which commands are still accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputState {
    /// All commands.
    Open,
    /// All commands except `send`: the program has closed the session.
    NoNewTurns,
    /// None: the input has ended, or a signal arrived.
    Closed,
}

struct Conversation<'a> {
    session: &'a Session,
    journal: &'a mut Journal,
    turns: Turns,
    steering: Steering<'a>,
    /// Whether the agent may start turns by itself.
    has_agent_turns: bool,
    /// Lines that wait for the writer.
    lines: VecDeque<String>,
    /// The unanswered requests of the running turn.
    open_requests: Vec<RequestId>,
    pending_answer: Option<PendingAnswer<'a>>,
    input: InputState,
    /// Whether a signal arrived.
    is_stopped: bool,
    /// The exit code of the last sent turn that has ended.
    code: u8,
}

impl<'a> Conversation<'a> {
    fn new(session: &'a Session, journal: &'a mut Journal, has_agent_turns: bool) -> Self {
        Self {
            session,
            journal,
            turns: Turns::default(),
            steering: Steering::default(),
            has_agent_turns,
            lines: VecDeque::new(),
            open_requests: Vec::new(),
            pending_answer: None,
            input: InputState::Open,
            is_stopped: false,
            code: exit::SUCCESS,
        }
    }

    /// Runs the loop until the session is closed and every turn has ended.
    async fn run(
        &mut self,
        mut commands: mpsc::Receiver<Line>,
        lines: &mpsc::Sender<String>,
        mut reader: oneshot::Receiver<ReaderClosed>,
        signals: &mut Signals,
        exit_timeout: Duration,
    ) -> End {
        let mut exit_deadline = None;
        while !self.is_over() {
            self.deny_if_unanswerable();
            let reads_commands =
                self.input != InputState::Closed && self.pending_answer.is_none() && self.lines.len() < WAITING_LINES;
            let events = next_event(&mut self.turns, &mut self.steering, self.session, self.has_agent_turns);
            tokio::select! {
                permit = lines.reserve(), if !self.lines.is_empty() => match permit {
                    Ok(permit) => permit.send(self.lines.pop_front().unwrap_or_default()),
                    Err(_) => return End::NoReader,
                },
                () = reader_closed(&mut reader) => return End::NoReader,
                event = events, if self.lines.is_empty() => self.on_session_event(event),
                line = commands.recv(), if reads_commands => self.on_line(line).await,
                answered = answered(&mut self.pending_answer) => self.on_answered(answered),
                () = runtime::sleep_until(exit_deadline) => return End::TimedOut,
                signal = signals.next() => {
                    self.input = InputState::Closed;
                    let again = std::mem::replace(&mut self.is_stopped, true) && signal == Signal::Interrupt;
                    for turn in self.turns.iter() {
                        if again { turn.run.control().abort() } else { turn.run.control().interrupt() }
                    }
                    if again && exit_deadline.is_none() {
                        exit_deadline = Some(Instant::now() + exit_timeout);
                        notify(KILLING_NOTICE);
                    } else if signal == Signal::Interrupt && !self.turns.is_empty() {
                        notify(STOPPING_NOTICE);
                    }
                }
            }
        }
        End::Closed
    }

    fn is_over(&self) -> bool {
        self.input != InputState::Open && self.turns.is_empty() && self.steering.is_empty() && self.lines.is_empty()
    }

    fn on_session_event(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Turn(event) => self.on_turn_event(event.as_ref()),
            SessionEvent::Cancelled(event) => self.lines.push_back(output::event(&event)),
            SessionEvent::Steered(origin, Ok(Applied::Joined)) => {
                let turn = self.turns.running().and_then(|turn| turn.id.as_deref());
                self.lines.push_back(output::joined(self.session, &origin, turn));
            }
            SessionEvent::Steered(_, Ok(Applied::Turn(run))) => self.turns.push_first(Turn::new(*run, true)),
            SessionEvent::Steered(origin, Ok(_)) => self.reject(&origin.reject("the outcome is unknown")),
            SessionEvent::Steered(origin, Err(error)) => self.reject(&command_failed(origin, &error)),
            SessionEvent::AgentTurn(Some(run)) => self.turns.push_first(Turn::new(run, false)),
            SessionEvent::AgentTurn(None) => self.has_agent_turns = false,
        }
    }

    /// Queues the error line of a rejected command.
    fn reject(&mut self, rejection: &Rejection) {
        self.lines.push_back(output::rejection(self.session, rejection));
    }

    /// Handles an event of the running turn; `None` if the turn ended without `done`.
    fn on_turn_event(&mut self, stamped: Option<&StampedEvent>) {
        let Some(turn) = self.turns.running() else { return };
        let event = stamped.map(|stamped| &stamped.event);
        match event {
            Some(Event::PermissionRequest(request)) => self.open_requests.push(request.request_id.clone()),
            Some(Event::PermissionAnswered(answered)) => {
                self.open_requests.retain(|request| *request != answered.request_id);
            }
            Some(Event::Question(question)) => self.open_requests.push(question.request_id.clone()),
            Some(Event::Done(done)) if turn.is_sent => self.code = exit::of_result(&done.result),
            _ => {}
        }
        if let Some(Event::Done(done)) = event {
            self.journal.add(&done.result);
            for origin in self.steering.joined() {
                self.lines.push_back(output::joined(self.session, &origin, turn.id.as_deref()));
            }
        }
        if let Some(stamped) = stamped {
            self.lines.push_back(output::event(stamped));
        }
        if matches!(event, None | Some(Event::Done(_))) {
            self.turns.end();
            self.open_requests.clear();
        }
    }

    /// Handles a line of input; `None` at the end of input.
    async fn on_line(&mut self, line: Option<Line>) {
        let Some(Line { number, content }) = line else {
            self.input = InputState::Closed;
            return;
        };
        let origin = Origin { line: number, id: None };
        let executed = match content {
            Content::Bytes(bytes) => match command::parse(number, &bytes) {
                None => Ok(()),
                Some(Ok((origin, command))) => self.execute(origin, command).await,
                Some(Err(rejection)) => Err(rejection),
            },
            Content::TooLong(length) => {
                Err(origin.reject(format!("the line has {length} bytes; the limit is {} bytes", input::MAX_LINE_BYTES)))
            }
            Content::Failed(error) => {
                self.input = InputState::Closed;
                Err(origin.reject(format!("cannot read standard input: {error}")))
            }
        };
        if let Err(rejection) = executed {
            self.reject(&rejection);
        }
    }

    async fn execute(&mut self, origin: Origin, command: SessionCommand) -> Result<(), Rejection> {
        match command {
            SessionCommand::Send { .. } if self.input == InputState::NoNewTurns => {
                Err(origin.reject("the session is closed: no further turns are accepted"))
            }
            SessionCommand::Send { id: Some(ref id), .. }
                if self.has_agent_turns && id.starts_with(AGENT_TURN_PREFIX) =>
            {
                let problem = format!("ids that begin with {AGENT_TURN_PREFIX} are reserved for the agent's own turns");
                Err(origin.reject(problem))
            }
            SessionCommand::Send { now: true, .. } => {
                self.steering.push(origin, self.session.apply(command));
                Ok(())
            }
            // The turn whose events are being written; the agent may already have ended it.
            SessionCommand::Interrupt { turn_id: None, .. } => match self.turns.running() {
                Some(turn) => {
                    turn.run.control().interrupt();
                    Ok(())
                }
                None => Err(origin.reject("no turn is running")),
            },
            SessionCommand::Interrupt { turn_id: Some(ref id), .. } => {
                self.turns.note_interrupt(id);
                self.apply(origin, command).await
            }
            SessionCommand::Answer { ref request_id, .. } => {
                let request = request_id.clone();
                self.answer(Some(origin), &request, command);
                Ok(())
            }
            SessionCommand::Close { .. } => {
                self.input = InputState::NoNewTurns;
                self.apply(origin, command).await
            }
            command => self.apply(origin, command).await,
        }
    }

    /// Applies a command whose outcome is known immediately.
    async fn apply(&mut self, origin: Origin, command: SessionCommand) -> Result<(), Rejection> {
        let model = match &command {
            SessionCommand::SetModel { model, .. } => Some(model.clone()),
            _ => None,
        };
        match self.session.apply(command).await {
            Ok(Applied::Turn(run)) => {
                self.turns.push(Turn::new(*run, true));
                Ok(())
            }
            Ok(_) => {
                if let Some(model) = model {
                    self.journal.set_model(model);
                }
                Ok(())
            }
            Err(error) => Err(command_failed(origin, &error)),
        }
    }

    fn answer(&mut self, origin: Option<Origin>, request: &RequestId, command: SessionCommand) {
        self.open_requests.retain(|open| open != request);
        self.pending_answer = Some(PendingAnswer { origin, answer: Box::pin(self.session.apply(command)) });
    }

    fn on_answered(&mut self, (origin, outcome): (Option<Origin>, Result<Applied, CommandError>)) {
        // An automatic denial may fail because the request was already withdrawn, so its error is ignored.
        if let (Some(origin), Err(error)) = (origin, outcome) {
            self.reject(&command_failed(origin, &error));
        }
    }

    /// Denies an open request if no answer can arrive any more.
    fn deny_if_unanswerable(&mut self) {
        if self.input == InputState::Closed
            && self.pending_answer.is_none()
            && let Some(request) = self.open_requests.pop()
        {
            let message = Some("No answer is possible: the input of the session has ended.".to_owned());
            let (request_id, decision) = (request.clone(), Some(Decision::Deny));
            let denial = SessionCommand::Answer {
                request_id,
                decision,
                option_id: None,
                choices: None,
                message,
                input: None,
                id: None,
            };
            self.answer(None, &request, denial);
        }
    }
}

/// Returns the rejection for a command that the library has rejected.
fn command_failed(origin: Origin, error: &CommandError) -> Rejection {
    let retryable = matches!(error, CommandError::Send(SendError::Busy));
    Rejection { retryable, ..origin.reject(error.to_string()) }
}

/// Waits until the reader closes standard output. Cancel-safe.
async fn reader_closed(reader: &mut oneshot::Receiver<ReaderClosed>) {
    if !reader.is_terminated() && reader.await.is_ok() {
        return;
    }
    pending::<()>().await;
}

/// Writes a notice. Standard error may be a pipe that is not read, and this thread also drives the agent, so another one waits.
fn notify(text: &'static str) {
    _ = std::thread::Builder::new().name("notice".to_owned()).spawn(move || write_notice(&text.into()));
}
