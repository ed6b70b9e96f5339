//! Writes a program's input while its output is read.
//!
//! What is to be written waits in a queue; [`StdinWriter::flush`] is one arm of the caller's `select!`, so that a
//! program which writes much before it reads never blocks both sides. Invariant: a program that does not read its
//! input is a value ([`StdinClosed`]), told once, and never ends anything by itself.

use std::{collections::VecDeque, fmt, io};

use bytes::{Buf, Bytes};
use tokio::{io::AsyncWriteExt, net::unix::pipe};

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
    closing: bool,
    /// Something was pushed that the pipe did not take, and never will.
    lost: bool,
}

impl StdinWriter {
    /// A writer to `pipe`; with `None` it is closed from the beginning.
    pub fn new(pipe: Option<pipe::Sender>) -> Self {
        Self { pipe, queue: VecDeque::new(), closing: false, lost: false }
    }

    /// Adds bytes to what is to be written. They are dropped if the input is closed already.
    pub fn push(&mut self, bytes: Bytes) {
        if self.pipe.is_some() && !self.closing && !bytes.is_empty() {
            self.queue.push_back(bytes);
        } else {
            self.lost |= !bytes.is_empty();
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

    /// Whether the pipe has taken everything that was pushed. What it took the program may not have read.
    pub fn has_written_all(&self) -> bool {
        self.queue.is_empty() && !self.lost
    }

    /// How many bytes wait to be written.
    pub fn pending(&self) -> usize {
        self.queue.iter().map(Bytes::len).sum()
    }

    /// Writes everything that was pushed.
    ///
    /// Can be dropped and called again at any time: it goes on where it was. After an error the input is closed.
    pub async fn flush(&mut self) -> Result<(), StdinClosed> {
        while let (Some(pipe), Some(front)) = (&mut self.pipe, self.queue.front_mut()) {
            // Nothing is awaited between a write and its entry in the queue.
            match pipe.write(front).await {
                Ok(count) => front.advance(count),
                Err(source) => {
                    let unwritten = self.pending();
                    self.pipe = None;
                    self.queue.clear();
                    self.lost = true;
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
        let Self { pipe, queue: _, closing, lost: _ } = self;
        f.debug_struct("StdinWriter")
            .field("pipe", pipe)
            .field("pending", &self.pending())
            .field("closing", closing)
            .finish()
    }
}
