//! Writes a program's input while its output is read.
//!
//! Input waits in a queue. [`StdinWriter::flush`] is one arm of the caller's `select!`, so a
//! program that writes much before it reads does not block both sides. Invariant: a program that
//! closes its stdin early causes one [`StdinClosed`] error and nothing else.

use std::{collections::VecDeque, fmt, io};

use bytes::{Buf, Bytes};
use tokio::net::unix::pipe;

use crate::write_signals::without_write_signals;

/// The program closed its stdin.
#[derive(Debug, thiserror::Error)]
#[error("the program closed its input before the last {unwritten} bytes were written")]
pub struct StdinClosed {
    /// The number of bytes that were not written to the pipe. The program may not have read all
    /// written bytes either.
    pub unwritten: usize,
    /// The error of the system.
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
    /// Bytes that were written to the pipe.
    taken: u64,
    /// Bytes that the program read; set when the pipe is closed.
    read: Option<u64>,
}

impl StdinWriter {
    /// Creates a writer to `pipe`. With `None` the input is closed from the beginning.
    pub fn new(pipe: Option<pipe::Sender>) -> Self {
        Self { pipe, queue: VecDeque::new(), pending: 0, closing: false, pushed: 0, taken: 0, read: None }
    }

    /// Queues bytes. They are dropped if the input is already closed.
    pub fn push(&mut self, bytes: Bytes) {
        self.pushed += bytes.len() as u64;
        if self.pipe.is_some() && !self.closing && !bytes.is_empty() {
            self.pending += bytes.len();
            self.queue.push_back(bytes);
        }
    }

    /// Closes the input after all queued bytes are written.
    pub fn close_when_written(&mut self) {
        self.closing = true;
        self.close_if_done();
    }

    /// Returns whether nothing is queued, so that [`flush`](Self::flush) would return at once.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns whether the input is closed, by this writer or by the program.
    pub fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    /// Returns the number of bytes that were pushed so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Returns an upper bound of the pushed bytes that the program has read. After the program's
    /// exit the number is exact on Linux; elsewhere it is the number of bytes written to the pipe.
    pub fn read_at_most(&self) -> u64 {
        self.read
            .unwrap_or_else(|| self.pipe.as_ref().map_or(self.taken, |pipe| self.taken.saturating_sub(unread(pipe))))
    }

    /// Returns the number of queued bytes.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Writes all queued bytes.
    ///
    /// Can be dropped and called again at any time; it continues where it stopped. After an error
    /// the input is closed.
    pub async fn flush(&mut self) -> Result<(), StdinClosed> {
        while let (Some(pipe), Some(front)) = (&self.pipe, self.queue.front_mut()) {
            // There is no await point between a write and its removal from the queue.
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

/// Writes some of the bytes once the pipe is writable.
async fn write(pipe: &pipe::Sender, bytes: &[u8]) -> io::Result<usize> {
    loop {
        pipe.writable().await?;
        match without_write_signals(|| pipe.try_write(bytes)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return written,
        }
    }
}

/// Returns the number of unread bytes in a pipe, which keeps them while one of its ends is open.
fn unread(pipe: &pipe::Sender) -> u64 {
    rustix::io::ioctl_fionread(pipe).unwrap_or(0)
}
