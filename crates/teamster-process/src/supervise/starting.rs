//! Starts the supervisor's process without blocking the caller.
//!
//! The call that starts a program returns once the system has loaded it. That takes long if the
//! file is on a slow network, and never happens while the new process is stopped (`SIGSTOP`). So a
//! thread makes the call.
//!
//! Invariant: a start whose caller stops waiting is killed, and its thread ends.

use std::{
    io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use crate::{handle, signal::Signal, stat::Stat, sys};

/// How often to check whether the new process is stopped.
const CHECK: Duration = Duration::from_millis(100);

/// The longest pause between two attempts to kill an abandoned start.
const MOST_PAUSE: Duration = Duration::from_secs(1);

/// Runs `start`, which starts one process, on a thread. If the future is dropped before it is
/// ready, the process is killed and the thread drops the result.
pub(super) async fn on_a_thread<T: Send + 'static>(
    start: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let state = Arc::new(State::default());
    let (sender, receiver) = oneshot::channel();
    let work = {
        let state = Arc::clone(&state);
        move || {
            *state.lock() = Phase::Starting { thread: sys::own_thread() };
            let started = start();
            *state.lock() = Phase::Over;
            _ = sender.send(started);
        }
    };
    thread::Builder::new().name("teamster-start".into()).spawn(work)?;
    let attempt = Attempt(state);
    let mut receiver = pin!(receiver);
    loop {
        match timeout(CHECK, receiver.as_mut()).await {
            Ok(Ok(started)) => return started,
            Ok(Err(_)) => return Err(io::Error::other("the thread that started it has panicked")),
            Err(_) => attempt.0.continue_if_stopped(),
        }
    }
}

#[derive(Debug, Default)]
struct State(Mutex<Phase>);

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Waiting,
    /// All children of this thread belong to the start.
    Starting {
        thread: i32,
    },
    Over,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues the new process if it is stopped.
    fn continue_if_stopped(&self) {
        self.send(Signal::Continue, Stat::is_stopped);
    }

    /// Kills the new process. Returns whether the start is over.
    fn kill(&self) -> bool {
        self.send(Signal::Kill, |_| true)
    }

    fn send(&self, signal: Signal, is_meant: impl Fn(&Stat) -> bool) -> bool {
        // While the lock is held, the thread cannot end and its id cannot be reused.
        let phase = self.lock();
        if let Phase::Starting { thread } = *phase {
            let children = sys::children_of_thread(thread).into_iter().filter_map(sys::stat_of);
            children.filter(is_meant).for_each(|child| handle::send(&child, signal));
        }
        matches!(*phase, Phase::Over)
    }
}

/// A start that a caller waits for. Dropping it kills the start if it has not finished.
struct Attempt(Arc<State>);

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.0.kill() {
            return;
        }
        let state = Arc::clone(&self.0);
        // The process may not exist yet, or hang in the kernel.
        let kill = move || {
            let mut pause = Duration::from_millis(5);
            while !state.kill() {
                thread::sleep(pause);
                pause = MOST_PAUSE.min(pause * 2);
            }
        };
        if let Err(error) = thread::Builder::new().name("teamster-reap".into()).spawn(kill) {
            tracing::warn!(%error, "cannot wait for an abandoned start of a supervisor");
        }
    }
}
