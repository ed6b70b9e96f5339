//! `teamster session`: a conversation for a program, one command a line in and one event a line out.
//!
//! One loop: it takes commands, events of the running turn and signals, and hands lines to the writer. Events are taken
//! when no line waits, so that a slow reader is waited for where the library waits for it; commands and signals are heard
//! all the same.
//!
//! Invariants: each turn that was taken ends in one `done`; a command that is not followed is one `error` and ends nothing;
//! when nobody can answer any more, what the agent asks is denied.

mod command;
mod input;
mod output;
mod turns;

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use teamster::event::RequestId;
use teamster::request::{BackgroundTasks, Decision, Limits, SessionCommand};
use teamster::{Applied, CommandError, Event, SendError, Session, StampedEvent};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use self::command::{Origin, Refusal};
use self::input::{Content, Line};
use self::output::Gone;
use self::turns::{Heard, OWN, Steering, Turn, Turns, heard};
use crate::args::SessionArgs;
use crate::begin::{self, ASKED_TO_STOP, ENDING, LAST_WORDS, refuse};
use crate::exit;
use crate::job::{self, Machine, Talk};
use crate::printable::{Printable, printable};
use crate::render::{write_error, write_notice};
use crate::signals::{Signal, Signals};

/// Lines that may wait for the writer before no command is read any more.
const WAITING_LINES: usize = 64;

/// Carries out the command and tells its exit code.
pub(crate) fn main(args: SessionArgs) -> u8 {
    let background_tasks = if args.background_tasks { BackgroundTasks::On } else { BackgroundTasks::Off };
    match job::check_talk(args.talk, Limits::default().answer, &mut Machine) {
        Ok(mut talk) => {
            talk.frame.background_tasks = background_tasks;
            begin::carry_out(hold(talk))
        }
        Err(error) => refuse(&Printable::error(&error), error.hint()),
    }
}

async fn hold(talk: Talk) -> io::Result<u8> {
    let runtime = talk.runtime;
    // Before anything is started: from now on no signal leaves something behind.
    let mut signals = Signals::catch()?;
    let (lines, written) = output::start()?;
    let (commands, reader) = (input::start()?, output::watch_reader()?);
    let patience = talk.frame.limits.grace + LAST_WORDS;
    let has_own_turns = talk.frame.background_tasks == BackgroundTasks::On;
    let session = match runtime.open(&talk.agent, talk.frame) {
        Ok(session) => session,
        Err(error) => return Ok(refuse(&Printable::error(&error), None)),
    };
    let mut conversation = Conversation::new(&session, has_own_turns);
    let end = conversation.hold(commands, &lines, reader, &mut signals, patience).await;
    let code = if conversation.stopped { exit::INTERRUPTED } else { conversation.code };
    drop(conversation);
    drop(lines);
    let code = match end {
        End::Closed => {
            close(session, &mut signals).await;
            written_whole(written, &mut signals, code).await
        }
        End::NoReader => {
            drop(session);
            how_it_was_written(written.await, exit::NO_READER)
        }
        End::GivenUp => exit::INTERRUPTED,
    };
    runtime.shutdown().await;
    Ok(code)
}

/// Ends the session; a signal meanwhile ends it harder.
async fn close(session: Session, signals: &mut Signals) {
    tokio::select! {
        () = session.close() => {}
        _ = signals.next() => {}
    }
}

/// Waits for the last lines to be read; a signal ends that.
async fn written_whole(written: oneshot::Receiver<io::Result<()>>, signals: &mut Signals, code: u8) -> u8 {
    tokio::select! {
        end = written => how_it_was_written(end, code),
        _ = signals.next() => exit::INTERRUPTED,
    }
}

fn how_it_was_written(end: Result<io::Result<()>, oneshot::error::RecvError>, code: u8) -> u8 {
    match end {
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
            write_error(
                &mut anstream::stderr(),
                &printable!("cannot write to standard output: {}", Printable::error(&error)),
                None,
            );
            exit::FAILURE
        }
        Ok(Err(_)) => exit::NO_READER,
        _ => code,
    }
}

/// How a conversation came to its end.
enum End {
    /// Every turn has had its `done`.
    Closed,
    /// Nobody reads what is said.
    NoReader,
    /// It was told to end at once, and nobody reads the last lines.
    GivenUp,
}

/// How much more is to come from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listening {
    /// Everything.
    ToAll,
    /// No more turns: it has closed the session.
    ToAnswers,
    /// Nothing.
    No,
}

/// An answer on its way to the agent.
struct Answering<'a> {
    /// The command, if it was one.
    origin: Option<Origin>,
    answer: Pin<Box<dyn Future<Output = Result<Applied, CommandError>> + Send + 'a>>,
}

struct Conversation<'a> {
    session: &'a Session,
    turns: Turns,
    steering: Steering<'a>,
    /// Whether the agent may begin turns by itself.
    has_own_turns: bool,
    /// Lines for the writer.
    lines: VecDeque<String>,
    /// What the running turn asks, and nobody has answered.
    asked: Vec<RequestId>,
    answering: Option<Answering<'a>>,
    listening: Listening,
    /// A signal came.
    stopped: bool,
    /// Of the last turn that was sent and has ended.
    code: u8,
}

impl<'a> Conversation<'a> {
    fn new(session: &'a Session, has_own_turns: bool) -> Self {
        Self {
            session,
            turns: Turns::default(),
            steering: Steering::default(),
            has_own_turns,
            lines: VecDeque::new(),
            asked: Vec::new(),
            answering: None,
            listening: Listening::ToAll,
            stopped: false,
            code: exit::SUCCESS,
        }
    }

    /// Until the session was closed and every turn has ended.
    async fn hold(
        &mut self,
        mut commands: mpsc::Receiver<Line>,
        lines: &mpsc::Sender<String>,
        mut reader: oneshot::Receiver<Gone>,
        signals: &mut Signals,
        patience: Duration,
    ) -> End {
        let mut give_up = None;
        while !self.is_over() {
            self.deny_for_nobody();
            let hears = self.listening != Listening::No && self.answering.is_none() && self.lines.len() < WAITING_LINES;
            tokio::select! {
                place = lines.reserve(), if !self.lines.is_empty() => match place {
                    Ok(place) => place.send(self.lines.pop_front().unwrap_or_default()),
                    Err(_) => return End::NoReader,
                },
                () = gone(&mut reader) => return End::NoReader,
                news = heard(&mut self.turns, &mut self.steering, self.session, self.has_own_turns), if self.lines.is_empty() => {
                    self.hear(news);
                }
                line = commands.recv(), if hears => self.line(line).await,
                answered = answered(&mut self.answering) => self.answered(answered),
                () = begin::at(give_up) => return End::GivenUp,
                signal = signals.next() => {
                    self.listening = Listening::No;
                    let again = std::mem::replace(&mut self.stopped, true) && signal == Signal::Interrupt;
                    for turn in self.turns.iter() {
                        if again { turn.run.control().abort() } else { turn.run.control().interrupt() }
                    }
                    if again && give_up.is_none() {
                        give_up = Some(Instant::now() + patience);
                        write_notice(&ENDING.into());
                    } else if signal == Signal::Interrupt && !self.turns.is_empty() {
                        write_notice(&ASKED_TO_STOP.into());
                    }
                }
            }
        }
        End::Closed
    }

    fn is_over(&self) -> bool {
        self.listening != Listening::ToAll && self.turns.is_empty() && self.steering.is_empty() && self.lines.is_empty()
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Event(event) => self.event(event.as_ref()),
            Heard::Cancelled(event) => self.lines.push_back(output::event(&event)),
            Heard::Sent(origin, Ok(Applied::Joined)) => {
                let turn = self.turns.running().and_then(|turn| turn.id.as_deref());
                self.lines.push_back(output::joined(&origin, turn));
            }
            Heard::Sent(_, Ok(Applied::Turn(run))) => self.turns.push_first(Turn::new(*run, true)),
            Heard::Sent(origin, Ok(_)) => {
                self.lines.push_back(output::refusal(&origin.refuse("nobody knows what became of it")));
            }
            Heard::Sent(origin, Err(error)) => self.lines.push_back(output::refusal(&refused(origin, &error))),
            Heard::Own(Some(run)) => self.turns.push_first(Turn::new(run, false)),
            Heard::Own(None) => self.has_own_turns = false,
        }
    }

    /// The running turn says something.
    fn event(&mut self, stamped: Option<&StampedEvent>) {
        let Some(turn) = self.turns.running() else { return };
        let event = stamped.map(|stamped| &stamped.event);
        match event {
            Some(Event::PermissionRequest(request)) => self.asked.push(request.request_id.clone()),
            Some(Event::PermissionAnswered(answered)) => self.asked.retain(|asked| *asked != answered.request_id),
            Some(Event::Question(question)) => self.asked.push(question.request_id.clone()),
            Some(Event::Done(done)) if turn.is_sent => self.code = exit::of_result(&done.result),
            _ => {}
        }
        if matches!(event, Some(Event::Done(_))) {
            for origin in self.steering.joined() {
                self.lines.push_back(output::joined(&origin, turn.id.as_deref()));
            }
        }
        if let Some(stamped) = stamped {
            self.lines.push_back(output::event(stamped));
        }
        if matches!(event, None | Some(Event::Done(_))) {
            self.turns.end();
            self.asked.clear();
        }
    }

    /// The program says something, or will not say anything any more.
    async fn line(&mut self, line: Option<Line>) {
        let Some(Line { number, content }) = line else {
            self.listening = Listening::No;
            return;
        };
        let nameless = Origin { line: number, id: None };
        let followed = match content {
            Content::Bytes(bytes) => match command::read(number, &bytes) {
                None => Ok(()),
                Some(Ok((origin, command))) => self.follow(origin, command).await,
                Some(Err(refusal)) => Err(refusal),
            },
            Content::TooLong(length) => Err(nameless.refuse(format!(
                "it has {length} bytes, more than the {} that a line may have",
                input::MAX_LINE_BYTES
            ))),
            Content::Failed(error) => {
                self.listening = Listening::No;
                Err(nameless.refuse(format!("standard input cannot be read any more: {error}")))
            }
        };
        if let Err(refusal) = followed {
            self.lines.push_back(output::refusal(&refusal));
        }
    }

    async fn follow(&mut self, origin: Origin, command: SessionCommand) -> Result<(), Refusal> {
        match command {
            SessionCommand::Send { .. } if self.listening == Listening::ToAnswers => {
                Err(origin.refuse("the session was closed: no more turns are taken"))
            }
            SessionCommand::Send { id: Some(ref id), .. } if self.has_own_turns && id.starts_with(OWN) => {
                Err(origin
                    .refuse(format!("ids that begin with {OWN} are those of turns that the agent begins by itself")))
            }
            SessionCommand::Send { now: true, .. } => {
                self.steering.push(origin, self.session.apply(command));
                Ok(())
            }
            // The one whose events are being written, though it may have ended meanwhile.
            SessionCommand::Interrupt { turn_id: None, .. } => match self.turns.running() {
                Some(turn) => {
                    turn.run.control().interrupt();
                    Ok(())
                }
                None => Err(origin.refuse("no turn is running")),
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
                self.listening = Listening::ToAnswers;
                self.apply(origin, command).await
            }
            command => self.apply(origin, command).await,
        }
    }

    /// Applies a command that does not wait.
    async fn apply(&mut self, origin: Origin, command: SessionCommand) -> Result<(), Refusal> {
        match self.session.apply(command).await {
            Ok(Applied::Turn(run)) => {
                self.turns.push(Turn::new(*run, true));
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => Err(refused(origin, &error)),
        }
    }

    fn answer(&mut self, origin: Option<Origin>, request: &RequestId, command: SessionCommand) {
        self.asked.retain(|asked| asked != request);
        self.answering = Some(Answering { origin, answer: Box::pin(self.session.apply(command)) });
    }

    fn answered(&mut self, (origin, outcome): (Option<Origin>, Result<Applied, CommandError>)) {
        // Of what was denied for nobody, some may have been over already.
        if let (Some(origin), Err(error)) = (origin, outcome) {
            self.lines.push_back(output::refusal(&refused(origin, &error)));
        }
    }

    /// Denies what is asked when no answer can come any more.
    fn deny_for_nobody(&mut self) {
        if self.listening == Listening::No
            && self.answering.is_none()
            && let Some(request) = self.asked.pop()
        {
            let message = Some("Nobody is there any more who could answer.".to_owned());
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

fn refused(origin: Origin, error: &CommandError) -> Refusal {
    let passes = matches!(error, CommandError::Send(SendError::Busy));
    Refusal { passes, ..origin.refuse(error.to_string()) }
}

/// Waits until nobody reads any more. Can be dropped and called again at any time.
async fn gone(reader: &mut oneshot::Receiver<Gone>) {
    if !reader.is_terminated() && reader.await.is_ok() {
        return;
    }
    pending::<()>().await;
}

/// How the answer fared that is on its way. Can be dropped and called again at any time.
async fn answered(answering: &mut Option<Answering<'_>>) -> (Option<Origin>, Result<Applied, CommandError>) {
    let Some(Answering { answer, .. }) = answering else { return pending().await };
    let outcome = answer.await;
    (answering.take().and_then(|answering| answering.origin), outcome)
}
