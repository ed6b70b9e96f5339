//! Reads what a program says beside its output, line by line, and keeps the end of it.

use std::{fmt, io, os::fd::AsFd};

use bytes::BufMut as _;
use tokio::{io::AsyncReadExt, net::unix::pipe};

use crate::lines::{Frame, LineFramer};
use crate::tail::Tail;

/// How much is read at a time.
const READ_BYTES: usize = 16 * 1024;

/// Longer lines are nothing that a program says of itself.
const LONGEST_LINE: usize = 64 * 1024;

/// Reads a pipe, gives its lines, and keeps its last bytes.
pub struct TailReader {
    pipe: pipe::Receiver,
    tail: Tail,
    lines: LineFramer,
    buffer: Vec<u8>,
}

impl TailReader {
    /// A reader that keeps the last `max_bytes`.
    pub fn new(pipe: pipe::Receiver, max_bytes: usize) -> Self {
        let (tail, lines) = (Tail::new(max_bytes), LineFramer::new(LONGEST_LINE));
        Self { pipe, tail, lines, buffer: Vec::new() }
    }

    /// Waits for something and reads it; 0 means that the stream has ended. Take out all lines between two calls.
    ///
    /// Can be dropped and called again at any time.
    pub async fn fill(&mut self) -> io::Result<usize> {
        self.make_room();
        let count = self.pipe.read_buf(&mut self.buffer).await?;
        self.keep();
        Ok(count)
    }

    /// Reads what is there now; `None` means that there is nothing, 0 that the stream has ended.
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

    /// The next whole line of what was read, unless it is too long, or `None` if more must be read.
    pub fn next_line(&mut self) -> Option<&[u8]> {
        match self.lines.next()? {
            Frame::Line(line) | Frame::Unterminated(line) => Some(line),
            // Nobody looks at it; what follows is told all the same.
            Frame::TooLong { .. } => Some(&[]),
        }
    }

    /// The end of what was read, as text.
    pub fn text(&self) -> String {
        self.tail.text()
    }

    fn make_room(&mut self) {
        self.buffer.clear();
        self.buffer.reserve(READ_BYTES);
    }

    fn keep(&mut self) {
        self.tail.push(&self.buffer);
        // A read is no longer than the space.
        self.lines.space().put_slice(&self.buffer);
    }
}

impl fmt::Debug for TailReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TailReader").field("pipe", &self.pipe).field("tail", &self.tail).finish_non_exhaustive()
    }
}
