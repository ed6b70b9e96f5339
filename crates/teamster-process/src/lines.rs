//! Splits output into lines.
//!
//! [`LineFramer`] does no I/O: it takes bytes and returns frames. Invariants: it buffers at most
//! one line of the maximum length and one read; each byte is scanned once, however the output is
//! split; and an overlong or invalid line never affects the next one.

use std::{fmt, io, os::fd::AsFd};

use bytes::BufMut;
use memchr::memchr;
use tokio::{io::AsyncReadExt, net::unix::pipe};

/// The number of bytes of the first read, and of each read that does not follow a full one.
const READ_BYTES: usize = 64 * 1024;

/// The number of bytes of the largest read. Each read of a full pipe wakes its writer.
const MAX_READ_BYTES: usize = 256 * 1024;

/// How many bytes of an overlong line are kept.
pub const HEAD_BYTES: usize = 1024;

/// The largest buffer that is kept after a long line while the writer is ahead.
const KEPT_BYTES: usize = 1024 * 1024;

/// The largest buffer that is kept otherwise: a session may be idle for a long time.
const IDLE_BYTES: usize = 2 * READ_BYTES;

/// A part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line, without its end (`\n` or `\r\n`).
    Line(&'a [u8]),
    /// A line that was longer than the limit. It was discarded.
    TooLong {
        /// Its first [`HEAD_BYTES`], or fewer.
        head: &'a [u8],
        /// Its length in bytes, without the `\n`.
        length: u64,
    },
    /// The last line, which has no line end.
    Unterminated(&'a [u8]),
}

/// Splits bytes into lines of at most a given length.
pub struct LineFramer {
    buffer: Vec<u8>,
    /// The start of the current line.
    begin: usize,
    /// How far the current line was searched for its end.
    searched: usize,
    max_line: usize,
    /// The number of bytes of the next read.
    read_bytes: usize,
    /// The number of buffered bytes before the last read.
    before: usize,
    /// The number of bytes of an overlong line that were discarded so far.
    skipped: Option<u64>,
    /// The beginning of that line.
    head: Vec<u8>,
}

impl LineFramer {
    /// Creates a framer for lines of at most `max_line` bytes, without the `\n`.
    pub fn new(max_line: usize) -> Self {
        Self {
            buffer: Vec::new(),
            begin: 0,
            searched: 0,
            max_line,
            read_bytes: READ_BYTES,
            before: 0,
            skipped: None,
            head: Vec::new(),
        }
    }

    /// Returns space for the next bytes. Take all frames first: only [`next`](Self::next) makes
    /// room.
    pub fn space(&mut self) -> impl BufMut {
        self.make_room();
        (&mut self.buffer).limit(self.read_bytes)
    }

    /// Returns the next complete line, or `None` if more bytes are needed.
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
        if self.is_too_long(begin, end) {
            return self.too_long(begin, end);
        }
        let line = self.buffer.get(begin..end)?;
        Some(Frame::Line(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Returns the remaining frames after the output has ended: complete lines, then the
    /// unterminated one.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        if memchr(b'\n', self.buffer.get(self.searched..)?).is_some() {
            return self.next();
        }
        let (begin, end) = (self.begin, self.buffer.len());
        self.begin = end;
        self.searched = end;
        if self.is_too_long(begin, end) {
            return self.too_long(begin, end);
        }
        let line = self.buffer.get(begin..end)?;
        (!line.is_empty()).then_some(Frame::Unterminated(line))
    }

    fn is_too_long(&self, begin: usize, end: usize) -> bool {
        self.skipped.is_some() || end - begin > self.max_line
    }

    fn too_long(&mut self, begin: usize, end: usize) -> Option<Frame<'_>> {
        self.skip(begin, end);
        let length = self.skipped.take()?;
        Some(Frame::TooLong { head: &self.head, length })
    }

    /// Counts a discarded part of an overlong line, and keeps the beginning of the line.
    fn skip(&mut self, begin: usize, end: usize) {
        let part = self.buffer.get(begin..end).unwrap_or_default();
        if self.skipped.is_none() {
            self.head.clear();
        }
        let room = HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(part.get(..room).unwrap_or(part));
        *self.skipped.get_or_insert(0) += part.len() as u64;
    }

    fn skip_if_too_long(&mut self) {
        if self.is_too_long(self.begin, self.buffer.len()) {
            self.skip(self.begin, self.buffer.len());
            self.buffer.clear();
            self.begin = 0;
            self.searched = 0;
        }
    }

    fn make_room(&mut self) {
        // A read that was full is followed by a larger one: the writer is ahead.
        let read = self.buffer.len().saturating_sub(self.before);
        self.read_bytes = if read < self.read_bytes { READ_BYTES } else { MAX_READ_BYTES.min(2 * self.read_bytes) };
        let rest = self.buffer.len() - self.begin;
        // Both conditions keep the total work linear: the moved rest is not larger than the
        // consumed part, or it would be copied anyway.
        if self.begin >= rest || self.buffer.len() + self.read_bytes > self.buffer.capacity() {
            self.buffer.drain(..self.begin);
            self.searched -= self.begin;
            self.begin = 0;
        }
        let kept = if self.read_bytes == READ_BYTES { IDLE_BYTES } else { KEPT_BYTES };
        if self.buffer.is_empty() && self.buffer.capacity() > kept {
            self.buffer = Vec::new();
        }
        let wanted = self.buffer.len() + self.read_bytes;
        if wanted > self.buffer.capacity() {
            // Capacity is doubled, so that a long line is not copied at every read, up to the
            // longest line.
            let most = self.max_line.saturating_add(self.read_bytes);
            let capacity = wanted.max(self.buffer.capacity().saturating_mul(2).min(most));
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
        self.before = self.buffer.len();
    }
}

/// Reads lines from a pipe.
#[derive(Debug)]
pub struct OutputReader {
    pipe: pipe::Receiver,
    framer: LineFramer,
}

impl OutputReader {
    /// Creates a reader of lines of at most `max_line` bytes.
    pub fn new(pipe: pipe::Receiver, max_line: usize) -> Self {
        Self { pipe, framer: LineFramer::new(max_line) }
    }

    /// Waits for output and reads it; returns 0 at the end of the output. Take all frames between
    /// two calls.
    ///
    /// Can be dropped and called again at any time.
    pub async fn fill(&mut self) -> io::Result<usize> {
        self.pipe.read_buf(&mut self.framer.space()).await
    }

    /// Reads the output that is available now. Returns `None` if there is none, and 0 at the end of
    /// the output. If the writer has exited, `None` means that all its output was read, even if
    /// other processes hold the pipe open.
    pub fn fill_now(&mut self) -> io::Result<Option<usize>> {
        loop {
            // The pipe is read directly, since the runtime may not know yet that it is readable.
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

    /// Returns the next complete line, or `None` if more must be read.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend what it holds")]
    pub fn next(&mut self) -> Option<Frame<'_>> {
        self.framer.next()
    }

    /// Returns the remaining frames once no more output is read. Call it until it returns `None`.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        self.framer.finish()
    }
}

impl fmt::Debug for LineFramer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineFramer")
            .field("buffered", &(self.buffer.len() - self.begin))
            .field("max_line", &self.max_line)
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum Owned {
        Line(Vec<u8>),
        TooLong(Vec<u8>, u64),
        Unterminated(Vec<u8>),
    }

    impl From<Frame<'_>> for Owned {
        fn from(frame: Frame<'_>) -> Self {
            match frame {
                Frame::Line(line) => Self::Line(line.to_vec()),
                Frame::TooLong { head, length } => Self::TooLong(head.to_vec(), length),
                Frame::Unterminated(line) => Self::Unterminated(line.to_vec()),
            }
        }
    }

    fn framed<'a>(max_line: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
        let mut framer = LineFramer::new(max_line);
        let mut found = Vec::new();
        for chunk in chunks {
            framer.space().put_slice(chunk);
            while let Some(frame) = framer.next() {
                found.push(frame.into());
            }
        }
        while let Some(frame) = framer.finish() {
            found.push(frame.into());
        }
        found
    }

    /// The expected frames, computed from the whole output at once.
    fn split(max_line: usize, output: &[u8]) -> Vec<Owned> {
        let mut lines: Vec<_> = output.split(|&byte| byte == b'\n').collect();
        let last = lines.pop().unwrap();
        let too_long = |line: &[u8]| Owned::TooLong(line[..line.len().min(HEAD_BYTES)].to_vec(), line.len() as u64);
        let mut frames: Vec<_> = lines
            .into_iter()
            .map(|line| match line.strip_suffix(b"\r") {
                _ if line.len() > max_line => too_long(line),
                Some(without) => Owned::Line(without.to_vec()),
                None => Owned::Line(line.to_vec()),
            })
            .collect();
        match last.len() {
            0 => {}
            length if length > max_line => frames.push(too_long(last)),
            _ => frames.push(Owned::Unterminated(last.to_vec())),
        }
        frames
    }

    #[test]
    fn line_ends_of_both_kinds_are_taken_off() {
        assert_eq!(
            framed(10, [b"a\r\n\nb\r\r\nc\r".as_slice()]),
            [
                Owned::Line(b"a".into()),
                Owned::Line(b"".into()),
                Owned::Line(b"b\r".into()),
                Owned::Unterminated(b"c\r".into()),
            ]
        );
    }

    #[test]
    fn a_line_that_is_too_long_leaves_the_next_one_intact() {
        assert_eq!(
            framed(4, [b"123".as_slice(), b"45", b"6789\nnext\n12345"]),
            [Owned::TooLong(b"123456789".into(), 9), Owned::Line(b"next".into()), Owned::TooLong(b"12345".into(), 5)]
        );
    }

    #[test]
    fn only_the_first_kibibyte_of_a_line_that_is_too_long_is_kept() {
        let line = [b"x".repeat(5000), b"\n".to_vec()].concat();
        assert_eq!(framed(2000, line.chunks(700)), [Owned::TooLong(b"x".repeat(1024), 5000)]);
    }

    #[test]
    fn a_line_of_64_megabytes_takes_no_more_memory_than_the_limit_and_one_read() {
        const MAX_LINE: usize = 1024 * 1024 + 1;
        let mut framer = LineFramer::new(MAX_LINE);
        for _ in 0..1024 {
            let read = framer.read_bytes;
            framer.space().put_bytes(b'x', READ_BYTES);
            assert_eq!(framer.next(), None);
            assert!(framer.buffer.capacity() <= MAX_LINE + read.max(framer.read_bytes));
        }
        framer.space().put_slice(b"\nnext\n");
        assert!(matches!(framer.next(), Some(Frame::TooLong { length: 67_108_864, head }) if head.len() == HEAD_BYTES));
        assert_eq!(framer.next(), Some(Frame::Line(b"next")));
    }

    #[test]
    fn a_long_line_in_small_pieces_takes_linear_time() {
        let line = [b"x".repeat(16 * 1024 * 1024), b"\n".to_vec()].concat();
        // A search from the start of the line would read 2^41 bytes.
        assert_eq!(framed(usize::MAX, line.chunks(64)).len(), 1);
    }

    #[test]
    fn reads_are_larger_while_the_writer_is_ahead() {
        let mut framer = LineFramer::new(usize::MAX);
        for expected in [1, 2, 4, 4] {
            let mut space = framer.space();
            assert_eq!(space.remaining_mut(), expected * READ_BYTES);
            space.put_bytes(b'\n', expected * READ_BYTES);
            drop(space);
            while framer.next().is_some() {}
        }
        framer.space().put_slice(b"a\n");
        assert!(framer.next().is_some());
        assert_eq!(framer.space().remaining_mut(), READ_BYTES);
        assert!(framer.buffer.capacity() <= IDLE_BYTES, "an idle process keeps little");
    }

    #[test]
    fn the_memory_of_a_long_line_is_given_back() {
        let mut framer = LineFramer::new(usize::MAX);
        for _ in 0..100 {
            framer.space().put_bytes(b'x', READ_BYTES);
            assert_eq!(framer.next(), None);
        }
        framer.space().put_slice(b"\n");
        assert!(framer.next().is_some());
        framer.space().put_slice(b"y");
        assert!(framer.buffer.capacity() <= KEPT_BYTES);
    }

    proptest! {
        #[test]
        fn any_output_gives_the_same_frames_however_it_is_cut(
            chunks in prop::collection::vec(
                prop::collection::vec(prop::sample::select(b"ab\r\n\n\xff".to_vec()), 0..12),
                0..20,
            ),
            max_line in 0usize..10,
        ) {
            let whole = chunks.concat();
            prop_assert_eq!(framed(max_line, chunks.iter().map(Vec::as_slice)), split(max_line, &whole));
        }

    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn lines_around_the_size_of_a_read_give_the_same_frames(
            lengths in prop::collection::vec(0usize..3 * READ_BYTES, 0..12),
            chunk in 1usize..READ_BYTES,
        ) {
            let whole: Vec<u8> = lengths.iter().flat_map(|&length| [b"x".repeat(length), b"\n".to_vec()].concat()).collect();
            let max_line = 2 * READ_BYTES;
            prop_assert!(framed(max_line, whole.chunks(chunk)) == split(max_line, &whole));
        }
    }
}
