//! The turns of a conversation, and words on their way into one.
//!
//! Whichever turn says something first is the one that runs: the agent's own turns come between those that were sent, and so does
//! what was sent to be heard at once and was not.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use teamster::{Event, Run, SendError, Sent, Session};

use super::command::Origin;

/// Begins the names of turns that the agent begins by itself.
pub(super) const OWN: &str = "own-";

/// What was heard of the session.
pub(super) enum Heard {
    /// The running turn says something; `None` if it ended without a word.
    Event(Option<Event>),
    /// It is known what became of words that were to be heard at once.
    Sent(Origin, Result<Sent, SendError>),
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

    /// The next event of the one that runs; `None` if it ended without a word. Can be dropped and called again at any time.
    pub(super) async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        if let Some(turn) = &mut self.speaking {
            return pin!(turn.run.next()).poll(context);
        }
        let mut waiting = self.waiting.iter_mut().enumerate();
        let said = waiting.find_map(|(at, turn)| match pin!(turn.run.next()).poll(context) {
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
    sent: Pin<Box<dyn Future<Output = Result<Sent, SendError>> + Send + 'a>>,
}

/// All that is on its way.
#[derive(Default)]
pub(super) struct Steering<'a>(Vec<Sending<'a>>);

impl<'a> Steering<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends it now, before anything else is done.
    pub(super) fn push(&mut self, origin: Origin, sent: impl Future<Output = Result<Sent, SendError>> + Send + 'a) {
        // Not polled for its outcome, which is taken in order with events.
        let mut sent: Pin<Box<dyn Future<Output = _> + Send + 'a>> = Box::pin(sent);
        if let Poll::Ready(outcome) = sent.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            sent = Box::pin(std::future::ready(outcome));
        }
        self.0.push(Sending { origin, sent });
    }

    /// What became of one. Can be dropped and called again at any time.
    pub(super) async fn next(&mut self) -> (Origin, Result<Sent, SendError>) {
        poll_fn(|context| {
            let mut all = self.0.iter_mut().enumerate();
            let outcome = all.find_map(|(at, sending)| match sending.sent.as_mut().poll(context) {
                Poll::Ready(outcome) => Some((at, outcome)),
                Poll::Pending => None,
            });
            match outcome {
                Some((at, outcome)) => Poll::Ready((self.0.remove(at).origin, outcome)),
                None => Poll::Pending,
            }
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
            event = turns.next() => Heard::Event(event),
            (origin, sent) = steering.next() => Heard::Sent(origin, sent),
            run = session.own_turn(), if has_own_turns => Heard::Own(run),
        }
    })
    .await
}
