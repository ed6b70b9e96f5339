//! The turns of a conversation, and words on their way into one.
//!
//! Whichever turn says something first is the one that runs: the agent's own turns come between those that were sent, and so does
//! what was sent to be heard at once and was not.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use teamster::event::ErrorCode;
use teamster::{Applied, CommandError, Event, Run, Session, StampedEvent};

use super::command::Origin;

/// Begins the names of turns that the agent begins by itself.
pub(super) const OWN: &str = "own-";

/// What was heard of the session.
pub(super) enum Heard {
    /// The running turn says something; `None` if it ended without a word.
    Event(Option<StampedEvent>),
    /// A turn that was cancelled while it waited says this.
    Cancelled(StampedEvent),
    /// It is known what became of words that were to be heard at once.
    Sent(Origin, Result<Applied, CommandError>),
    /// The agent begins a turn by itself; `None` if it will not.
    Own(Option<Run>),
}

/// A turn.
pub(super) struct Turn {
    /// Its name in the events.
    pub(super) id: Option<String>,
    pub(super) run: Run,
    /// Whether it was sent.
    pub(super) is_sent: bool,
    /// The first event, where it was looked at before its time.
    first: Option<StampedEvent>,
    aside: Aside,
}

/// Whether a turn ends beside the one that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aside {
    No,
    /// It was interrupted: if it says first that it was aborted, it has never run.
    Maybe,
    /// It was cancelled while it waited.
    Yes,
}

impl Turn {
    pub(super) fn new(run: Run, is_sent: bool) -> Self {
        Self { id: run.turn_id().map(str::to_owned), run, is_sent, first: None, aside: Aside::No }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<StampedEvent>> {
        match self.first.take() {
            Some(event) => Poll::Ready(Some(event)),
            None => pin!(self.run.next_stamped()).poll(context),
        }
    }

    /// What it says beside the turn that runs.
    fn poll_aside(&mut self, context: &mut Context<'_>) -> Poll<StampedEvent> {
        while self.aside != Aside::No {
            match pin!(self.run.next_stamped()).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(event)) if self.aside == Aside::Yes || is_aborted(&event.event) => {
                    self.aside = Aside::Yes;
                    return Poll::Ready(event);
                }
                Poll::Ready(first) => (self.first, self.aside) = (first, Aside::No),
            }
        }
        Poll::Pending
    }
}

fn is_aborted(event: &Event) -> bool {
    matches!(event, Event::Error(failure) if failure.code == ErrorCode::Aborted)
}

/// Those that have not ended.
#[derive(Default)]
pub(super) struct Turns {
    speaking: Option<Turn>,
    waiting: VecDeque<Turn>,
}

impl Turns {
    pub(super) fn is_empty(&self) -> bool {
        self.speaking.is_none() && self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, turn: Turn) {
        self.waiting.push_back(turn);
    }

    /// Adds one that comes before those that wait.
    pub(super) fn push_first(&mut self, turn: Turn) {
        self.waiting.push_front(turn);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Turn> {
        self.speaking.iter().chain(&self.waiting)
    }

    /// The one that runs, or will run next.
    pub(super) fn running(&self) -> Option<&Turn> {
        self.iter().next()
    }

    /// Removes the one that runs.
    pub(super) fn end(&mut self) {
        self.speaking = None;
    }

    /// Notes that the turn of this name is interrupted.
    pub(super) fn note_interrupt(&mut self, id: &str) {
        for turn in self.waiting.iter_mut().filter(|turn| turn.id.as_deref() == Some(id)) {
            if turn.first.is_none() && turn.aside == Aside::No {
                turn.aside = Aside::Maybe;
            }
        }
    }

    /// What a turn says that was cancelled while it waited.
    fn poll_cancelled(&mut self, context: &mut Context<'_>) -> Poll<Heard> {
        for at in 0..self.waiting.len() {
            let Some(turn) = self.waiting.get_mut(at) else { continue };
            if let Poll::Ready(event) = turn.poll_aside(context) {
                if matches!(event.event, Event::Done(_)) {
                    self.waiting.remove(at);
                }
                return Poll::Ready(Heard::Cancelled(event));
            }
        }
        Poll::Pending
    }

    /// The next event of the one that runs, or of one that was cancelled. Can be dropped and called again at any time.
    async fn next(&mut self) -> Heard {
        poll_fn(|context| match self.poll_cancelled(context) {
            Poll::Pending => self.poll(context).map(Heard::Event),
            cancelled @ Poll::Ready(_) => cancelled,
        })
        .await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<StampedEvent>> {
        if let Some(turn) = &mut self.speaking {
            return turn.poll(context);
        }
        let mut waiting = self.waiting.iter_mut().enumerate().filter(|(_, turn)| turn.aside == Aside::No);
        let said = waiting.find_map(|(at, turn)| match turn.poll(context) {
            Poll::Ready(event) => Some((at, event)),
            Poll::Pending => None,
        });
        let Some((at, event)) = said else { return Poll::Pending };
        self.speaking = self.waiting.remove(at);
        Poll::Ready(event)
    }
}

/// What was said within a turn, and is not known to be heard.
struct Sending<'a> {
    origin: Origin,
    sent: Becoming<'a>,
}

enum Becoming<'a> {
    Unknown(Pin<Box<dyn Future<Output = Result<Applied, CommandError>> + Send + 'a>>),
    Known(Result<Applied, CommandError>),
}

impl Becoming<'_> {
    /// Whether it is known.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        if let Self::Unknown(sent) = self
            && let Poll::Ready(outcome) = sent.as_mut().poll(context)
        {
            *self = Self::Known(outcome);
        }
        matches!(self, Self::Known(_))
    }
}

/// All that is on its way.
#[derive(Default)]
pub(super) struct Steering<'a>(Vec<Sending<'a>>);

impl<'a> Steering<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends it now, before anything else is done.
    pub(super) fn push(
        &mut self,
        origin: Origin,
        sent: impl Future<Output = Result<Applied, CommandError>> + Send + 'a,
    ) {
        // Not polled for its outcome, which is taken in order with events.
        let mut sent = Becoming::Unknown(Box::pin(sent));
        sent.poll(&mut Context::from_waker(Waker::noop()));
        self.0.push(Sending { origin, sent });
    }

    /// What has joined the turn whose `done` was just heard: that was known before.
    pub(super) fn joined(&mut self) -> Vec<Origin> {
        let mut context = Context::from_waker(Waker::noop());
        // From the last one: where it is known of one that it has joined, it is known of the one before what became of that.
        for sending in self.0.iter_mut().rev() {
            sending.sent.poll(&mut context);
        }
        // Behind one that is a turn they have joined that turn.
        let is_turn = |sending: &Sending<'_>| matches!(sending.sent, Becoming::Known(Ok(Applied::Turn(_))));
        let end = self.0.iter().position(is_turn).unwrap_or(self.0.len());
        let is_joined = |sending: &mut Sending<'_>| matches!(sending.sent, Becoming::Known(Ok(Applied::Joined)));
        self.0.extract_if(..end, is_joined).map(|sending| sending.origin).collect()
    }

    /// What became of one. Can be dropped and called again at any time.
    pub(super) async fn next(&mut self) -> (Origin, Result<Applied, CommandError>) {
        poll_fn(|context| match self.0.extract_if(.., |sending| sending.sent.poll(context)).next() {
            Some(Sending { origin, sent: Becoming::Known(outcome) }) => Poll::Ready((origin, outcome)),
            _ => Poll::Pending,
        })
        .await
    }
}

/// What is heard next: all that a turn has said before what comes after it. Can be dropped and called again at any time.
pub(super) async fn heard(
    turns: &mut Turns,
    steering: &mut Steering<'_>,
    session: &Session,
    has_own_turns: bool,
) -> Heard {
    // What is there is not to look as if it were not, since the task has had its share.
    tokio::task::unconstrained(async {
        tokio::select! {
            biased;
            heard = turns.next() => heard,
            (origin, sent) = steering.next() => Heard::Sent(origin, sent),
            run = session.own_turn(), if has_own_turns => Heard::Own(run),
        }
    })
    .await
}
