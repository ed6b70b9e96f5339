//! Standard output.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;

/// Standard output with a buffer.
pub(crate) struct Output {
    to: File,
    buffer: Vec<u8>,
}

/// More than this is written at once.
const PIECE: usize = 64 * 1024;

impl Output {
    pub(crate) fn new() -> Self {
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().expect("standard output is open");
        Self { to: stdout.into(), buffer: Vec::with_capacity(2 * PIECE) }
    }

    /// Appends text.
    pub(crate) fn put(&mut self, text: &str) -> &mut Self {
        self.buffer.extend_from_slice(text.as_bytes());
        if self.buffer.len() >= PIECE {
            self.flush();
        }
        self
    }

    /// Appends text so many times.
    pub(crate) fn repeat(&mut self, text: &str, times: u64) -> &mut Self {
        for _ in 0..times {
            self.put(text);
        }
        self
    }

    /// Appends a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.put(line).put("\n");
    }

    /// Writes what was appended.
    pub(crate) fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.buffer);
        self.write(&bytes);
        self.buffer = bytes;
        self.buffer.clear();
    }

    /// Writes at once, without the buffer, which must be empty. Exits if the reader is gone.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.to.write_all(bytes).is_err() {
            crate::leave();
        }
    }
}
