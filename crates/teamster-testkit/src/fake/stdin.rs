//! Standard input, read to its end in the background once a step needs it.
//!
//! Every line is kept, so that each reader sees all lines at its own pace.

use std::io::{self, BufRead as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Instant;

/// The lines that have arrived so far.
#[derive(Debug)]
pub(super) struct Lines {
    state: Mutex<State>,
    changed: Condvar,
}

/// The result of waiting for a line.
pub(super) enum Next {
    Line(Arc<str>),
    /// The deadline passed.
    Timeout,
    End,
}

#[derive(Debug)]
struct State {
    lines: Vec<Arc<str>>,
    ended: bool,
}

impl Lines {
    /// Returns the lines of this process's stdin. The first call starts reading it.
    pub(super) fn of_stdin() -> &'static Self {
        static LINES: Lines =
            Lines { state: Mutex::new(State { lines: Vec::new(), ended: false }), changed: Condvar::new() };
        static READING: Once = Once::new();
        READING.call_once(|| _ = std::thread::spawn(|| LINES.read()));
        &LINES
    }

    /// Waits for the line with this index. Returns `None` if stdin ends first.
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

    /// Waits for the line with this index, at most until the deadline.
    pub(super) fn next(&self, number: usize, deadline: Option<Instant>) -> Next {
        let mut state = self.state();
        loop {
            if let Some(line) = state.lines.get(number) {
                return Next::Line(Arc::clone(line));
            }
            if state.ended {
                return Next::End;
            }
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return Next::Timeout,
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Waits for the end of stdin and returns all of it.
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
        // A read error ends the input.
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
