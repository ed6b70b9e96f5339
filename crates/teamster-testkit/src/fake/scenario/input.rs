//! The host's input: JSON lines for a live interface, one prompt for a one-shot run.

use std::io;
use std::time::Instant;

use serde_json::Value;

use super::dialect::HostInput;
use crate::fake::stdin::{Lines, Next};

/// The JSON lines on stdin, in order.
#[derive(Debug, Default)]
pub(super) struct JsonInput {
    line: usize,
}

/// The result of waiting for a JSON line.
enum Line {
    Json(Value),
    Timeout,
    Closed,
}

impl JsonInput {
    /// Waits for the next line that is JSON; other lines are skipped.
    fn next(&mut self, deadline: Option<Instant>) -> Line {
        loop {
            match Lines::of_stdin().next(self.line, deadline) {
                Next::Line(line) => {
                    self.line += 1;
                    if let Ok(value) = serde_json::from_str(&line) {
                        return Line::Json(value);
                    }
                }
                Next::Timeout => return Line::Timeout,
                Next::End => return Line::Closed,
            }
        }
    }
}

/// Waits for a JSON line that is an input of the scenario; other lines are skipped.
pub(super) fn next_json_input<T>(
    dialect: &mut T,
    deadline: Option<Instant>,
    input: fn(&mut T) -> &mut JsonInput,
    handle: fn(&mut T, &Value) -> io::Result<Option<HostInput>>,
) -> io::Result<HostInput> {
    loop {
        match input(dialect).next(deadline) {
            Line::Timeout => return Ok(HostInput::Timeout),
            Line::Closed => return Ok(HostInput::Closed),
            Line::Json(line) => {
                if let Some(received) = handle(dialect, &line)? {
                    return Ok(received);
                }
            }
        }
    }
}

/// The input of a one-shot run: the prompt is an argument or all of stdin.
#[derive(Debug, Default)]
pub(super) struct OneShotInput {
    pub(super) argument: Option<String>,
    received: bool,
}

impl OneShotInput {
    pub(super) fn of(argument: Option<&str>) -> Self {
        Self { argument: argument.map(str::to_owned), received: false }
    }

    pub(super) fn next_input(&mut self, deadline: Option<Instant>) -> HostInput {
        if std::mem::replace(&mut self.received, true) {
            return match deadline {
                Some(deadline) => {
                    std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
                    HostInput::Timeout
                }
                None => HostInput::Closed,
            };
        }
        HostInput::Prompt(self.argument.take().unwrap_or_else(|| Lines::of_stdin().all()))
    }
}
