//! Reads what a CLI writes: lines of the protocol stream, diagnostics, and the events of its server.
//!
//! A turn, the drain after the exit, and the time between turns all read through [`AgentOutput`]. So over-long lines, noise
//! and the limits on reading mean the same in all three.

use teamster_agents::protocol::Input;
use teamster_process::spawn::PIPE_BYTES;
use teamster_process::{Frame, OutputReader, TailReader};
use teamster_types::event::{Warning, WarningCode};

use crate::agent_server::ServerEvent;
use crate::recording::Recorder;

/// Receives what a CLI writes.
pub(in crate::driver) trait Receiver {
    /// The next lines were read now.
    fn starts_reading(&mut self) {}
    /// Passes an input to the protocol, and carries out its actions.
    fn input(&mut self, input: Input<'_>);
    fn warn(&mut self, warning: Warning);
    fn recorder(&self) -> &Recorder;
    /// Whether the rest of the output must wait, because the turn that it belongs to is not this one.
    fn is_done(&self) -> bool;
}

/// The output streams of a CLI.
#[derive(Debug)]
pub(in crate::driver) struct AgentOutput {
    lines: OutputReader,
    lines_open: bool,
    diagnostics: TailReader,
    diagnostics_open: bool,
    /// The maximum length of a line and of a server event, in bytes.
    max_line_bytes: usize,
}

/// The stream that has new bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Filled {
    Lines,
    Diagnostics,
}

impl AgentOutput {
    pub(super) fn new(lines: OutputReader, diagnostics: TailReader, max_line_bytes: usize) -> Self {
        Self { lines, lines_open: true, diagnostics, diagnostics_open: true, max_line_bytes }
    }

    /// Whether the protocol stream can have more bytes.
    pub(in crate::driver) fn is_open(&self) -> bool {
        self.lines_open
    }

    /// Waits for bytes and buffers them. Reads the protocol stream only if `reads_lines`. Waits forever if there is no stream
    /// to read. Cancel safe.
    pub(in crate::driver) async fn fill(&mut self, reads_lines: bool) -> Filled {
        tokio::select! {
            read = self.lines.fill(), if self.lines_open && reads_lines => {
                self.lines_open = is_more(&read);
                Filled::Lines
            }
            read = self.diagnostics.fill(), if self.diagnostics_open => {
                self.diagnostics_open = is_more(&read);
                Filled::Diagnostics
            }
            else => std::future::pending().await,
        }
    }

    /// Passes the buffered bytes of a stream on.
    pub(in crate::driver) fn deliver(&mut self, filled: Filled, to: &mut impl Receiver) {
        match filled {
            Filled::Lines => self.deliver_lines(to),
            Filled::Diagnostics => self.deliver_diagnostics(to),
        }
    }

    /// Passes the buffered lines on, until the receiver is done.
    pub(in crate::driver) fn deliver_lines(&mut self, to: &mut impl Receiver) {
        to.starts_reading();
        while !to.is_done()
            && let Some(frame) = self.lines.next()
        {
            deliver_frame(frame, self.max_line_bytes, to);
        }
    }

    fn deliver_diagnostics(&mut self, to: &mut impl Receiver) {
        while let Some(line) = self.diagnostics.next_line() {
            to.recorder().diagnostic(line);
            to.input(Input::Diagnostic(line));
        }
    }

    /// Passes a server event on.
    pub(in crate::driver) fn deliver_event(&self, event: &ServerEvent, to: &mut impl Receiver) {
        to.recorder().server_event(event);
        match event {
            ServerEvent::TooLong { head, length } => {
                to.warn(too_long("an event", head, *length, self.max_line_bytes));
            }
            event => event.input().into_iter().for_each(|input| to.input(input)),
        }
    }

    /// Reads and passes on the lines that are in the pipe now. The leader wrote no more than a pipe holds; other processes that
    /// hold the pipe may write without end.
    pub(in crate::driver) fn read_pending_lines(&mut self, to: &mut impl Receiver) {
        let mut left = PIPE_BYTES;
        while left > 0
            && !to.is_done()
            && let Ok(Some(count @ 1..)) = self.lines.fill_now()
        {
            left = left.saturating_sub(count);
            self.deliver_lines(to);
        }
    }

    /// Buffers lines that are in the pipe now. Returns the number of bytes; `None` if there are none now or the read fails.
    pub(super) fn fill_lines_now(&mut self) -> Option<usize> {
        self.lines.fill_now().ok().flatten()
    }

    /// The same for the diagnostics.
    pub(in crate::driver) fn read_pending_diagnostics(&mut self, to: &mut impl Receiver) {
        let mut left = PIPE_BYTES;
        while left > 0
            && self.diagnostics_open
            && let Ok(Some(count @ 1..)) = self.diagnostics.fill_now()
        {
            left = left.saturating_sub(count);
            self.deliver_diagnostics(to);
        }
    }

    /// Passes the last line on, which has no line end.
    pub(in crate::driver) fn finish_lines(&mut self, to: &mut impl Receiver) {
        to.starts_reading();
        while let Some(frame) = self.lines.finish() {
            deliver_frame(frame, self.max_line_bytes, to);
        }
    }

    /// Returns the tail of the diagnostics.
    pub(super) fn diagnostics_tail(&self) -> String {
        self.diagnostics.text()
    }
}

fn deliver_frame(frame: Frame<'_>, max_bytes: usize, to: &mut impl Receiver) {
    to.recorder().output(&frame);
    match frame {
        Frame::Line(line) | Frame::Unterminated(line) => to.input(Input::Line(line)),
        Frame::TooLong { head, length } => to.warn(too_long("a line", head, length, max_bytes)),
    }
}

fn too_long(what: &str, head: &[u8], length: u64, max_bytes: usize) -> Warning {
    let text = format!("skipped {what} of {length} bytes, more than {max_bytes}");
    let head: String = String::from_utf8_lossy(head).chars().take(120).collect();
    Warning::new(WarningCode::LineTooLong, text).with("line", head)
}

fn is_more(read: &std::io::Result<usize>) -> bool {
    matches!(read, Ok(count) if *count > 0)
}
