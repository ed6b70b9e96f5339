//! Splits output into lines.
//!
//! [`LineFramer`] does no I/O: bytes go in, frames come out. Invariants: it never holds more than one line of the
//! longest length and one read, each byte is looked at once however the output is cut, and what a line holds, be it
//! too long or no text, never touches the next one.

use std::{io, os::fd::AsFd};

use bytes::BufMut;
use memchr::memchr;
use tokio::{io::AsyncReadExt, net::unix::pipe};

/// How much is read at a time.
const READ_BYTES: usize = 64 * 1024;

/// How much of a line that is too long is kept.
pub const HEAD_BYTES: usize = 1024;

/// A line that has been so long that its memory is given back after it.
const KEPT_BYTES: usize = 1024 * 1024;

/// A part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line, without its end (`\n` or `\r\n`).
    Line(&'a [u8]),
    /// A line that was longer than the limit, and is gone.
    TooLong {
        /// How it began: its first [`HEAD_BYTES`], or fewer.
        head: &'a [u8],
        /// How many bytes it had, up to the `\n`.
        length: u64,
    },
    /// The last line, whose end never came.
    Unterminated(&'a [u8]),
}

/// Splits bytes into lines of at most a given length.
#[derive(Debug)]
pub struct LineFramer {
    buffer: Vec<u8>,
    /// Where the current line begins.
    begin: usize,
    /// Up to where the current line was searched for its end.
    searched: usize,
    max_line: usize,
    /// How much of a line that is too long was thrown away so far.
    skipped: Option<u64>,
    /// The beginning of that line.
    head: Vec<u8>,
}

impl LineFramer {
    /// A framer for lines of at most `max_line` bytes, their `\n` not counted.
    pub fn new(max_line: usize) -> Self {
        Self { buffer: Vec::new(), begin: 0, searched: 0, max_line, skipped: None, head: Vec::new() }
    }

    /// Space for the next bytes of the output. Take out all frames first: only [`next`](Self::next) makes room.
    pub fn space(&mut self) -> impl BufMut {
        self.make_room();
        (&mut self.buffer).limit(READ_BYTES)
    }

    /// The next whole line, or `None` if more bytes are needed.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend what it holds")]
    pub fn next(&mut self) -> Option<Frame<'_>> {
        let Some(offset) = memchr(b'\n', self.buffer.get(self.searched..)?) else {
            self.searched = self.buffer.len();
            self.skip_if_too_long();
            return None;
        };
        let (begin, end) = (self.begin, self.searched + offset);
        self.begin = end + 1;
        self.searched = end + 1;
        let line = self.buffer.get(begin..end)?;
        if let Some(skipped) = self.skipped.take() {
            return Some(Frame::TooLong { head: &self.head, length: skipped + length_of(line) });
        }
        if line.len() > self.max_line {
            return Some(Frame::TooLong { head: head_of(line), length: length_of(line) });
        }
        Some(Frame::Line(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// What is left when the output has ended: lines that were not taken out yet, then the one without an end.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        if memchr(b'\n', self.buffer.get(self.searched..)?).is_some() {
            return self.next();
        }
        let begin = std::mem::replace(&mut self.begin, self.buffer.len());
        self.searched = self.buffer.len();
        let line = self.buffer.get(begin..)?;
        if let Some(skipped) = self.skipped.take() {
            return Some(Frame::TooLong { head: &self.head, length: skipped + length_of(line) });
        }
        if line.len() > self.max_line {
            return Some(Frame::TooLong { head: head_of(line), length: length_of(line) });
        }
        (!line.is_empty()).then_some(Frame::Unterminated(line))
    }

    fn skip_if_too_long(&mut self) {
        let Some(line) = self.buffer.get(self.begin..) else {
            return;
        };
        match &mut self.skipped {
            Some(skipped) => *skipped += length_of(line),
            None if line.len() > self.max_line => {
                self.head.clear();
                self.head.extend_from_slice(head_of(line));
                self.skipped = Some(length_of(line));
            }
            None => return,
        }
        self.buffer.clear();
        self.begin = 0;
        self.searched = 0;
    }

    fn make_room(&mut self) {
        // Moving at most as much as was consumed before keeps the whole linear.
        if self.begin >= self.buffer.len() - self.begin {
            self.buffer.drain(..self.begin);
            self.searched -= self.begin;
            self.begin = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        let wanted = self.buffer.len() + READ_BYTES;
        if wanted > self.buffer.capacity() {
            // Doubled, so that a long line is not copied at every read, but not past the longest line.
            let most = self.max_line.saturating_add(READ_BYTES);
            let capacity = wanted.max(self.buffer.capacity().saturating_mul(2).min(most));
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
    }
}

fn head_of(line: &[u8]) -> &[u8] {
    line.get(..HEAD_BYTES).unwrap_or(line)
}

fn length_of(line: &[u8]) -> u64 {
    line.len() as u64
}

/// Reads lines from a pipe.
#[derive(Debug)]
pub struct OutputReader {
    pipe: pipe::Receiver,
    framer: LineFramer,
}

impl OutputReader {
    /// A reader of lines of at most `max_line` bytes.
    pub fn new(pipe: pipe::Receiver, max_line: usize) -> Self {
        Self { pipe, framer: LineFramer::new(max_line) }
    }

    /// Waits for output and reads some; 0 means that it has ended. Take out all frames between two calls.
    ///
    /// Can be dropped and called again at any time.
    pub async fn fill(&mut self) -> io::Result<usize> {
        self.pipe.read_buf(&mut self.framer.space()).await
    }

    /// Reads what is there now; `None` means that there is nothing, 0 that the output has ended. After the writer's
    /// end, everything that it wrote has been read when this gives `None`, even if others hold the pipe open.
    pub fn fill_now(&mut self) -> io::Result<Option<usize>> {
        loop {
            // The pipe itself is asked: the runtime may not have noticed yet that there is something.
            self.framer.make_room();
            let space = rustix::buffer::spare_capacity(&mut self.framer.buffer);
            match rustix::io::read(self.pipe.as_fd(), space) {
                Ok(count) => return Ok(Some(count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// The next whole line, or `None` if more must be read.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend what it holds")]
    pub fn next(&mut self) -> Option<Frame<'_>> {
        self.framer.next()
    }

    /// What is left when the output has ended, or will be read no further. Call it until it gives `None`.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        self.framer.finish()
    }
}
