//! Reads a burst with one thread and one buffer.

use std::io::Read as _;
use std::path::Path;

use teamster_benches::forms::Form;
use teamster_benches::report::{Report, float, mebibytes, microseconds, milliseconds};
use teamster_benches::usage::{cpu_ns, now_ns, peak_rss_kib};

use crate::types::Counts;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Lines,
    Typed,
}

/// A buffer with the rest of an incomplete line at its start.
struct Lines {
    buffer: Vec<u8>,
    filled: usize,
}

pub(crate) fn measure(form: Form, program: &Path, reader: Reader) -> Report {
    let mut lines = Lines { buffer: vec![0; 1 << 20], filled: 0 };
    let mut counts = Counts::default();
    let mut seen = 0;
    let (cpu, began) = (cpu_ns(), now_ns());
    let (cli, mut stdout) = form.start(program).expect("the CLI starts");
    let mut stdin = cli.stdin;
    loop {
        let read = stdout.read(lines.space()).expect("a pipe");
        if read == 0 {
            break;
        }
        lines.filled += read;
        lines.take(|line| {
            seen += 1;
            if reader == Reader::Typed {
                counts.line(form, line);
            }
            if form.ends_turn(line) {
                stdin = None;
            }
        });
    }
    let (cpu, wall) = (cpu_ns() - cpu, now_ns() - began);
    let mut child = cli.child;
    let _status = child.wait();
    let events = if reader == Reader::Typed { counts.texts } else { seen };
    Report::default()
        .with("cpu_us", microseconds(cpu))
        .with("wall_ms", milliseconds(wall))
        .with("events", float(events))
        .with("peak_mib", mebibytes(peak_rss_kib()))
}

impl Lines {
    /// Returns the free space, which is never empty.
    fn space(&mut self) -> &mut [u8] {
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        self.buffer.get_mut(self.filled..).unwrap_or_default()
    }

    /// Passes each complete line on and keeps the rest.
    fn take(&mut self, mut pass: impl FnMut(&[u8])) {
        let bytes = self.buffer.get(..self.filled).unwrap_or_default();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            pass(bytes.get(start..end).unwrap_or_default());
            start = end + 1;
        }
        self.buffer.copy_within(start..self.filled, 0);
        self.filled -= start;
    }
}
