//! The turns of a session that have not ended, and texts that were sent into a running turn.
//!
//! The running turn is the one that emits an event first. The agent's own turns run between those that were sent. So does
//! a text that was sent with `now` but could not join the running turn.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::SystemTime;

use teamster::command::{Applied, CommandError};
use teamster::event::ErrorCode;
use teamster::{Event, Run, Session, StampedEvent};

use super::command::Origin;

/// The prefix of the ids of turns that the agent starts by itself.
pub(super) const AGENT_TURN_PREFIX: &str = "own-";

/// An event of the session.
pub(super) enum SessionEvent {
    /// An event of the running turn; `None` if the turn ended without `done`.
    Turn(Option<StampedEvent>),
    /// An event of a turn that was cancelled while it waited.
    Cancelled(StampedEvent),
    /// The outcome of a text that was sent with `now`.
    Steered(Origin, Result<Applied, CommandError>),
    /// The agent started a turn by itself; `None` if it will not start one any more.
    AgentTurn(Option<Run>),
}

/// A turn that has not ended.
pub(super) struct Turn {
    /// The `turnId` of its events.
    pub(super) id: Option<String>,
    pub(super) run: Run,
    /// Whether a command started it, not the agent.
    pub(super) is_sent: bool,
    /// The first event, if it was read before the turn ran.
    first: Option<StampedEvent>,
    cancellation: Cancellation,
}

/// Whether a waiting turn was cancelled. Its last events are then reported while another turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancellation {
    No,
    /// The turn was interrupted. If its first event reports that, it has never run.
    Requested,
    /// The turn was cancelled while it waited.
    Confirmed,
}

impl Turn {
    pub(super) fn new(run: Run, is_sent: bool) -> Self {
        Self { id: run.turn_id().map(str::to_owned), run, is_sent, first: None, cancellation: Cancellation::No }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<StampedEvent>> {
        match self.first.take() {
            Some(event) => Poll::Ready(Some(event)),
            None => pin!(self.run.next_stamped()).poll(context),
        }
    }

    /// Polls the first event, and keeps it. Returns its time; `None` if the turn has ended without events.
    fn poll_start(&mut self, context: &mut Context<'_>) -> Poll<Option<SystemTime>> {
        if self.first.is_none() {
            match pin!(self.run.next_stamped()).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(first) => self.first = first,
            }
        }
        Poll::Ready(self.first.as_ref().map(|first| first.time))
    }

    /// Polls the next event of a cancelled turn.
    fn poll_cancelled(&mut self, context: &mut Context<'_>) -> Poll<StampedEvent> {
        while self.cancellation != Cancellation::No {
            match pin!(self.run.next_stamped()).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(event))
                    if self.cancellation == Cancellation::Confirmed || is_aborted(&event.event) =>
                {
                    self.cancellation = Cancellation::Confirmed;
                    return Poll::Ready(event);
                }
                Poll::Ready(first) => (self.first, self.cancellation) = (first, Cancellation::No),
            }
        }
        Poll::Pending
    }
}

fn is_aborted(event: &Event) -> bool {
    matches!(event, Event::Error(failure) if failure.code == ErrorCode::Aborted)
}

/// The turns that have not ended.
#[derive(Default)]
pub(super) struct Turns {
    running: Option<Turn>,
    waiting: VecDeque<Turn>,
}

impl Turns {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_none() && self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, turn: Turn) {
        self.waiting.push_back(turn);
    }

    /// Adds a turn that runs before those that wait.
    pub(super) fn push_first(&mut self, turn: Turn) {
        self.waiting.push_front(turn);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Turn> {
        self.running.iter().chain(&self.waiting)
    }

    /// Returns the turn that runs, or that will run next.
    pub(super) fn running(&self) -> Option<&Turn> {
        self.iter().next()
    }

    /// Removes the running turn.
    pub(super) fn end(&mut self) {
        self.running = None;
    }

    /// Notes that the turn with this id was interrupted.
    pub(super) fn note_interrupt(&mut self, id: &str) {
        for turn in self.waiting.iter_mut().filter(|turn| turn.id.as_deref() == Some(id)) {
            if turn.first.is_none() && turn.cancellation == Cancellation::No {
                turn.cancellation = Cancellation::Requested;
            }
        }
    }

    /// Polls the turns that were cancelled while they waited.
    fn poll_cancelled(&mut self, context: &mut Context<'_>) -> Poll<SessionEvent> {
        for at in 0..self.waiting.len() {
            let Some(turn) = self.waiting.get_mut(at) else { continue };
            if let Poll::Ready(event) = turn.poll_cancelled(context) {
                if matches!(event.event, Event::Done(_)) {
                    self.waiting.remove(at);
                }
                return Poll::Ready(SessionEvent::Cancelled(event));
            }
        }
        Poll::Pending
    }

    /// Polls the next event of the running turn or of a cancelled one.
    fn poll_running(&mut self, context: &mut Context<'_>) -> Poll<SessionEvent> {
        match (self.poll_cancelled(context), &mut self.running) {
            (Poll::Pending, Some(turn)) => turn.poll(context).map(SessionEvent::Turn),
            (cancelled, _) => cancelled,
        }
    }

    /// Polls the waiting turns until one runs, and returns its first event. Of several that have started, the first is that
    /// with the oldest event.
    fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<SessionEvent> {
        if self.running.is_some() {
            return Poll::Pending;
        }
        let waiting = self.waiting.iter_mut().enumerate().filter(|(_, turn)| turn.cancellation == Cancellation::No);
        let started = waiting.filter_map(|(at, turn)| match turn.poll_start(context) {
            Poll::Ready(time) => Some((time, at)),
            Poll::Pending => None,
        });
        let Some((_, at)) = started.min() else { return Poll::Pending };
        self.running = self.waiting.remove(at);
        Poll::Ready(SessionEvent::Turn(self.running.as_mut().and_then(|turn| turn.first.take())))
    }
}

/// A text that was sent into a running turn and whose outcome is not reported yet.
struct Steer<'a> {
    origin: Origin,
    outcome: SteerOutcome<'a>,
}

enum SteerOutcome<'a> {
    Pending(Pin<Box<dyn Future<Output = Result<Applied, CommandError>> + Send + 'a>>),
    Ready(Result<Applied, CommandError>),
}

impl SteerOutcome<'_> {
    /// Polls the outcome. Returns whether it is known.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        if let Self::Pending(sent) = self
            && let Poll::Ready(outcome) = sent.as_mut().poll(context)
        {
            *self = Self::Ready(outcome);
        }
        matches!(self, Self::Ready(_))
    }
}

/// The texts that were sent into a running turn, in the order of their commands.
#[derive(Default)]
pub(super) struct Steering<'a>(Vec<Steer<'a>>);

impl<'a> Steering<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a text and polls its future once, so that it is sent before any later command.
    pub(super) fn push(
        &mut self,
        origin: Origin,
        sent: impl Future<Output = Result<Applied, CommandError>> + Send + 'a,
    ) {
        // A known outcome is stored, so that it is reported in order with the events.
        let mut outcome = SteerOutcome::Pending(Box::pin(sent));
        outcome.poll(&mut Context::from_waker(Waker::noop()));
        self.0.push(Steer { origin, outcome });
    }

    /// Removes the texts that have joined the turn which has just ended, and returns their origins. The library resolves
    /// their futures before it emits the turn's `done`.
    pub(super) fn joined(&mut self) -> Vec<Origin> {
        let mut context = Context::from_waker(Waker::noop());
        // Polled from the last one: once a text has joined, the outcome of the text before it is known.
        for steer in self.0.iter_mut().rev() {
            steer.outcome.poll(&mut context);
        }
        // A text after one that became a turn has joined that turn instead.
        let is_turn = |steer: &Steer<'_>| matches!(steer.outcome, SteerOutcome::Ready(Ok(Applied::Turn(_))));
        let end = self.0.iter().position(is_turn).unwrap_or(self.0.len());
        let is_joined = |steer: &mut Steer<'_>| matches!(steer.outcome, SteerOutcome::Ready(Ok(Applied::Joined)));
        self.0.extract_if(..end, is_joined).map(|steer| steer.origin).collect()
    }

    /// Polls the next known outcome.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(Origin, Result<Applied, CommandError>)> {
        match self.0.extract_if(.., |steer| steer.outcome.poll(context)).next() {
            Some(Steer { origin, outcome: SteerOutcome::Ready(outcome) }) => Poll::Ready((origin, outcome)),
            _ => Poll::Pending,
        }
    }
}

/// Waits for the next event of the session. The events of a turn come before everything that follows the turn. A turn of the
/// agent is known before the turns after it run, also if all of their events have already arrived. Cancel-safe.
pub(super) async fn next_event(
    turns: &mut Turns,
    steering: &mut Steering<'_>,
    session: &Session,
    has_agent_turns: bool,
) -> SessionEvent {
    let mut agent_turn = pin!(session.next_agent_turn());
    let next = poll_fn(|context| {
        let mut event = turns.poll_running(context);
        if event.is_pending() && has_agent_turns {
            event = agent_turn.as_mut().poll(context).map(SessionEvent::AgentTurn);
        }
        if event.is_pending() {
            event = turns.poll_waiting(context);
        }
        if event.is_pending() {
            event = steering.poll(context).map(|(origin, outcome)| SessionEvent::Steered(origin, outcome));
        }
        event
    });
    // Without `unconstrained`, a task that has used up its budget sees ready futures as pending, which breaks the order.
    tokio::task::unconstrained(next).await
}
