//! Writes a program's input while its output is read.
//!
//! What is to be written waits in a queue; [`StdinWriter::flush`] is one arm of the caller's `select!`, so that a
//! program which writes much before it reads never blocks both sides. Invariant: a program that does not read its
//! input is a value ([`StdinClosed`]), told once, and never ends anything by itself.

use std::{collections::VecDeque, fmt, io};

use bytes::{Buf, Bytes};
use tokio::net::unix::pipe;

use crate::write_signals::without_write_signals;

/// The program reads no more.
#[derive(Debug, thiserror::Error)]
#[error("the program closed its input before the last {unwritten} bytes were written")]
pub struct StdinClosed {
    /// How many bytes the pipe did not take. It may have taken some that the program never read.
    pub unwritten: usize,
    /// What the system said.
    pub source: io::Error,
}

/// Writes to a program's stdin.
pub struct StdinWriter {
    pipe: Option<pipe::Sender>,
    queue: VecDeque<Bytes>,
    /// Bytes in `queue`.
    pending: usize,
    closing: bool,
    /// Bytes that were pushed.
    pushed: u64,
    /// Bytes that the pipe took.
    taken: u64,
    /// Bytes that were read, once nothing more is written.
    read: Option<u64>,
}

impl StdinWriter {
    /// A writer to `pipe`; with `None` it is closed from the beginning.
    pub fn new(pipe: Option<pipe::Sender>) -> Self {
        Self { pipe, queue: VecDeque::new(), pending: 0, closing: false, pushed: 0, taken: 0, read: None }
    }

    /// Adds bytes to what is to be written. They are dropped if the input is closed already.
    pub fn push(&mut self, bytes: Bytes) {
        self.pushed += bytes.len() as u64;
        if self.pipe.is_some() && !self.closing && !bytes.is_empty() {
            self.pending += bytes.len();
            self.queue.push_back(bytes);
        }
    }

    /// Ends the input after what was pushed so far.
    pub fn close_when_written(&mut self) {
        self.closing = true;
        self.close_if_done();
    }

    /// Whether there is nothing to write, so that [`flush`](Self::flush) would return at once.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the input has ended, by us or by the program.
    pub fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    /// How many bytes were pushed so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// How many bytes of what was pushed the program may have read. Once it has exited these are those that it did read,
    /// where the system tells (Linux does); elsewhere all that the pipe took.
    pub fn read_at_most(&self) -> u64 {
        self.read
            .unwrap_or_else(|| self.pipe.as_ref().map_or(self.taken, |pipe| self.taken.saturating_sub(unread(pipe))))
    }

    /// How many bytes wait to be written.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Writes everything that was pushed.
    ///
    /// Can be dropped and called again at any time: it goes on where it was. After an error the input is closed.
    pub async fn flush(&mut self) -> Result<(), StdinClosed> {
        while let (Some(pipe), Some(front)) = (&self.pipe, self.queue.front_mut()) {
            // Nothing is awaited between a write and its entry in the queue.
            match write(pipe, front).await {
                Ok(count) => {
                    front.advance(count);
                    self.pending -= count;
                    self.taken += count as u64;
                }
                Err(source) => {
                    let unwritten = self.pending();
                    self.read = Some(self.read_at_most());
                    self.pipe = None;
                    self.queue.clear();
                    self.pending = 0;
                    return Err(StdinClosed { unwritten, source });
                }
            }
            if front.is_empty() {
                self.queue.pop_front();
            }
        }
        self.close_if_done();
        Ok(())
    }

    fn close_if_done(&mut self) {
        if self.closing && self.queue.is_empty() {
            self.pipe = None;
        }
    }
}

impl fmt::Debug for StdinWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pipe, queue: _, pending: _, closing, pushed: _, taken: _, read: _ } = self;
        f.debug_struct("StdinWriter")
            .field("pipe", pipe)
            .field("pending", &self.pending())
            .field("closing", closing)
            .finish()
    }
}

/// Writes some of these bytes, once the pipe has room for some.
async fn write(pipe: &pipe::Sender, bytes: &[u8]) -> io::Result<usize> {
    loop {
        pipe.writable().await?;
        match without_write_signals(|| pipe.try_write(bytes)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return written,
        }
    }
}

/// How many bytes wait in a pipe. It holds them for as long as one of its ends is open.
fn unread(pipe: &pipe::Sender) -> u64 {
    rustix::io::ioctl_fionread(pipe).unwrap_or(0)
}
