//! Runs work that waits for a disk on Tokio's blocking threads.
//!
//! Tokio panics if it needs a first thread for such work and the system refuses one. So this module checks before that a thread
//! can be started. Invariant: if the system refuses threads, nothing here panics, and no work is lost.

use std::future::pending;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use teamster_process::{Limit, can_start_threads, without_write_signals};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::task::TaskTracker;

/// Runs work that may wait for a disk on a thread, so that it does not block other runs. If the caller stops waiting, the
/// result is dropped there. If the system has no thread, the work runs in place.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    begin(work).wait().await
}

/// Work that was started. Dropping it does not stop the work; its result is dropped when it is done.
#[derive(Debug)]
pub(crate) enum Started<T> {
    /// The work was done in place.
    Done(T),
    /// A thread does the work. `None` if the Tokio runtime has ended.
    Running(Option<JoinHandle<Option<T>>>),
}

/// Starts work that may wait for a disk on a thread, now. If the system has no thread, the work runs in place.
pub(crate) fn begin<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Started<T> {
    let work = Shared::new(work);
    let started = start(|| tokio::task::spawn_blocking(work.runner()));
    if let Err(error) = &started
        && let Some(work) = work.take()
    {
        tracing::debug!(%error, "no thread is available; the work is done in place");
        return Started::Done(without_write_signals(work));
    }
    Started::Running(started.ok())
}

impl<T> Started<T> {
    /// Waits until the work is done.
    pub(crate) async fn wait(self) -> T {
        let handle = match self {
            Self::Done(done) => return done,
            Self::Running(Some(handle)) => handle,
            Self::Running(None) => return pending().await,
        };
        match handle.await.map_err(JoinError::try_into_panic) {
            Ok(Some(done)) => done,
            Err(Ok(panic)) => resume_unwind(panic),
            // Happens only when the Tokio runtime ends, which drops its tasks.
            Ok(None) | Err(Err(_)) => pending().await,
        }
    }
}

/// Starts work that only the tracker waits for.
///
/// # Errors
/// The system has no thread for it. The work is not done.
pub(crate) fn track(tracker: &TaskTracker, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let work = Shared::new(work);
    let started = start(|| tracker.spawn_blocking(work.runner()));
    started.map(drop).inspect_err(|_| drop(work.take()))
}

/// Returns an error of [`track`] as a text for people, with the limit that caused it.
pub(crate) fn explain(error: &io::Error) -> String {
    let limit = Limit::behind(error).map(|limit| format!(", since {limit}")).unwrap_or_default();
    format!("cannot start a thread{limit}: {error}")
}

/// Passes work to Tokio, if a thread can be started.
fn start<H>(spawn: impl FnOnce() -> H) -> io::Result<H> {
    can_start_threads(1)?;
    // Another process may have used up the limit since the check. Tokio panics then, and keeps the work in its queue.
    catch_unwind(AssertUnwindSafe(spawn)).map_err(|_| io::ErrorKind::WouldBlock.into())
}

/// Work that the first taker does.
struct Shared<W>(Arc<Mutex<Option<W>>>);

impl<W> Shared<W> {
    fn new(work: W) -> Self {
        Self(Arc::new(Mutex::new(Some(work))))
    }

    fn take(&self) -> Option<W> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns a function that does the work, if it was not taken before.
    fn runner<T>(&self) -> impl FnOnce() -> Option<T> + Send + use<W, T>
    where
        W: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let shared = Self(Arc::clone(&self.0));
        move || shared.take().map(without_write_signals)
    }
}
