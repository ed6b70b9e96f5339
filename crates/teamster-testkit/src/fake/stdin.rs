//! Standard input, read to its end in the background from the first step on that asks for it.
//!
//! Every line is kept, so that each reader finds all of them, at its own pace.

use std::io::{self, BufRead as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Instant;

/// The lines that have come so far.
#[derive(Debug)]
pub(super) struct Lines {
    state: Mutex<State>,
    changed: Condvar,
}

/// What a wait for a line came to.
pub(super) enum Next {
    Line(Arc<str>),
    /// None came in time.
    Late,
    End,
}

#[derive(Debug)]
struct State {
    lines: Vec<Arc<str>>,
    ended: bool,
}

impl Lines {
    /// The lines of this process's stdin. The first call begins to read it.
    pub(super) fn of_stdin() -> &'static Self {
        static LINES: Lines =
            Lines { state: Mutex::new(State { lines: Vec::new(), ended: false }), changed: Condvar::new() };
        static READING: Once = Once::new();
        READING.call_once(|| _ = std::thread::spawn(|| LINES.read()));
        &LINES
    }

    /// Waits for a line; `None` when stdin ended before it.
    pub(super) fn wait_for(&self, number: usize) -> Option<Arc<str>> {
        let mut state = self.state();
        loop {
            if let Some(line) = state.lines.get(number) {
                return Some(Arc::clone(line));
            }
            if state.ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for a line, until then at most.
    pub(super) fn next(&self, number: usize, until: Option<Instant>) -> Next {
        let mut state = self.state();
        loop {
            if let Some(line) = state.lines.get(number) {
                return Next::Line(Arc::clone(line));
            }
            if state.ended {
                return Next::End;
            }
            state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return Next::Late,
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// All of stdin, when it has ended.
    pub(super) fn all(&self) -> String {
        self.wait_for_end();
        self.state().lines.concat()
    }

    /// Waits for the end of stdin.
    pub(super) fn wait_for_end(&self) {
        let mut state = self.state();
        while !state.ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn read(&self) {
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        // An error is an end: nothing more can be read.
        while matches!(stdin.read_until(b'\n', &mut line), Ok(count) if count > 0) {
            self.state().lines.push(String::from_utf8_lossy(&line).into());
            self.changed.notify_all();
            line.clear();
        }
        self.state().ended = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
