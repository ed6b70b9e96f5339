//! How many runs live at once.
//!
//! Who asks first is let in first: a place in the queue is taken by the call that starts the run, not by the task that
//! drives it, since tasks begin in any order.

use std::fmt;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::coop::unconstrained;

/// Lets runs in, all of them or a number at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Option<Arc<Semaphore>>);

/// A place in the queue, then among the runs that live. Dropping it gives the place to the next.
#[derive(Default)]
pub(crate) struct Turn {
    wait: Option<Pin<Box<Wait>>>,
    /// Held until the run has ended.
    permit: Option<OwnedSemaphorePermit>,
}

/// `None` could only come from a semaphore that was closed, and nobody closes this one.
type Wait = dyn Future<Output = Option<OwnedSemaphorePermit>> + Send;

impl Gate {
    /// A gate for this many at once.
    pub(crate) fn of(runs: NonZeroUsize) -> Self {
        Self(Some(Arc::new(Semaphore::new(runs.get().min(Semaphore::MAX_PERMITS)))))
    }

    /// Takes the next place in the queue.
    pub(crate) fn queue(&self) -> Turn {
        let Some(places) = self.0.clone() else { return Turn::default() };
        // The first poll takes the place. A task that has done much is told to wait without being asked, were it not
        // for `unconstrained`.
        let wait = Box::pin(unconstrained(async { places.acquire_owned().await.ok() }));
        let mut turn = Turn { wait: Some(wait), permit: None };
        turn.poll(&mut Context::from_waker(Waker::noop()));
        turn
    }
}

impl Turn {
    /// Waits for the turn. Can be dropped and called again at any time: the place in the queue stays.
    pub(crate) async fn come(&mut self) {
        std::future::poll_fn(|context| {
            self.poll(context);
            if self.wait.is_some() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        if let Some(wait) = &mut self.wait
            && let Poll::Ready(permit) = wait.as_mut().poll(context)
        {
            (self.wait, self.permit) = (None, permit);
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("waits", &self.wait.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than a task may ask of Tokio in one go.
    const MANY: usize = 500;

    fn gate(runs: usize) -> Gate {
        Gate::of(NonZeroUsize::new(runs).unwrap())
    }

    fn has_come(turn: &mut Turn) -> bool {
        turn.poll(&mut Context::from_waker(Waker::noop()));
        turn.wait.is_none()
    }

    #[tokio::test]
    async fn the_turn_comes_in_the_order_of_the_queue_whoever_asks_first() {
        let gate = gate(1);
        let mut turns: Vec<_> = (0..MANY).map(|_| gate.queue()).collect();
        while !turns.is_empty() {
            let come: Vec<_> = turns.iter_mut().rev().map(has_come).rev().collect();
            assert!(come.first() == Some(&true) && !come.get(1..).unwrap().contains(&true), "{come:?}");
            turns.remove(0);
        }
    }

    #[tokio::test]
    async fn as_many_live_at_once_as_were_allowed() {
        let gate = gate(3);
        let mut turns: Vec<_> = (0..5).map(|_| gate.queue()).collect();
        assert_eq!(turns.iter_mut().map(has_come).collect::<Vec<_>>(), [true, true, true, false, false]);
        turns.remove(1);
        assert_eq!(turns.iter_mut().map(has_come).collect::<Vec<_>>(), [true, true, true, false]);
    }

    #[tokio::test]
    async fn who_leaves_the_queue_holds_nobody_up() {
        let gate = gate(1);
        let first = gate.queue();
        let (second, mut third) = (gate.queue(), gate.queue());
        drop(second);
        drop(first);
        assert!(has_come(&mut third));
    }

    #[tokio::test]
    async fn waiting_can_be_given_up_and_begun_again_without_losing_the_place() {
        let gate = gate(1);
        let first = gate.queue();
        let (mut second, mut third) = (gate.queue(), gate.queue());
        for _ in 0..3 {
            let waited = tokio::time::timeout(std::time::Duration::ZERO, second.come()).await;
            assert!(waited.is_err());
        }
        drop(first);
        second.come().await;
        assert!(!has_come(&mut third));
    }

    #[tokio::test]
    async fn without_a_limit_nobody_waits() {
        let gate = Gate::default();
        let mut turns: Vec<_> = (0..MANY).map(|_| gate.queue()).collect();
        assert!(turns.iter_mut().all(has_come));
    }

    #[tokio::test]
    async fn a_limit_beyond_what_a_semaphore_counts_is_as_good_as_none() {
        assert!(has_come(&mut gate(usize::MAX).queue()));
    }
}
