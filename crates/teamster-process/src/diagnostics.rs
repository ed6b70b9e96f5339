//! Reads a program's diagnostics (the stream that is not its output) line by line, and keeps the
//! last bytes.

use std::{fmt, io, os::fd::AsFd};

use bytes::BufMut as _;
use tokio::{io::AsyncReadExt, net::unix::pipe};

use crate::lines::{Frame, LineFramer};
use crate::tail::Tail;

/// The number of bytes per read.
const READ_BYTES: usize = 16 * 1024;

/// The longest line that is returned; longer ones are not diagnostics.
const LONGEST_LINE: usize = 64 * 1024;

/// Reads lines from a pipe and keeps its last bytes.
pub struct TailReader {
    pipe: pipe::Receiver,
    tail: Tail,
    lines: LineFramer,
    buffer: Vec<u8>,
}

impl TailReader {
    /// Creates a reader that keeps the last `max_bytes`.
    pub fn new(pipe: pipe::Receiver, max_bytes: usize) -> Self {
        let (tail, lines) = (Tail::new(max_bytes), LineFramer::new(LONGEST_LINE));
        Self { pipe, tail, lines, buffer: Vec::new() }
    }

    /// Waits for data and reads it; returns 0 at the end of the stream. Take all lines with
    /// [`next_line`](Self::next_line) between two calls.
    ///
    /// Can be dropped and called again at any time.
    pub async fn fill(&mut self) -> io::Result<usize> {
        self.make_room();
        let count = self.pipe.read_buf(&mut self.buffer).await?;
        self.keep();
        Ok(count)
    }

    /// Reads the data that is available now. Returns `None` if there is none, and 0 at the end of
    /// the stream.
    pub fn fill_now(&mut self) -> io::Result<Option<usize>> {
        loop {
            self.make_room();
            match rustix::io::read(self.pipe.as_fd(), rustix::buffer::spare_capacity(&mut self.buffer)) {
                Ok(count) => {
                    self.keep();
                    return Ok(Some(count));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Returns the next complete line (empty if it is too long), or `None` if more data must be
    /// read.
    pub fn next_line(&mut self) -> Option<&[u8]> {
        match self.lines.next()? {
            Frame::Line(line) | Frame::Unterminated(line) => Some(line),
            // An empty line stands for it, so that the caller continues with the next line.
            Frame::TooLong { .. } => Some(&[]),
        }
    }

    /// Returns the last bytes that were read, as text.
    pub fn text(&self) -> String {
        self.tail.text()
    }

    fn make_room(&mut self) {
        self.buffer.clear();
        self.buffer.reserve(READ_BYTES);
    }

    fn keep(&mut self) {
        self.tail.push(&self.buffer);
        // A read is never longer than the space.
        self.lines.space().put_slice(&self.buffer);
    }
}

impl fmt::Debug for TailReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TailReader").field("pipe", &self.pipe).field("tail", &self.tail).finish_non_exhaustive()
    }
}
