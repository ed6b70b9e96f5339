//! The format `ndjson`, for programs: one event per line, as it happens.
//!
//! Lines that are ready together are written with one call.

use std::io::{self, Write as _};
use std::time::Instant;

use serde::Serialize;
use teamster::{Event, StampedEvent};

use super::json::append_line;
use super::renderer::{Renderer, Streams};

/// The number of bytes above which lines are written although more of them are ready.
const WRITE_BYTES: usize = 64 * 1024;

/// The largest buffer that is kept after a long line.
const KEPT_BYTES: usize = 2 * WRITE_BYTES;

#[derive(Default)]
pub(super) struct Ndjson {
    /// Lines that were not written yet.
    lines: Vec<u8>,
}

impl Ndjson {
    fn append(&mut self, event: &impl Serialize, to: &mut Streams) -> io::Result<()> {
        append_line(event, &mut self.lines)?;
        if self.lines.len() >= WRITE_BYTES { self.flush(to) } else { Ok(()) }
    }
}

impl Renderer for Ndjson {
    fn event(&mut self, event: &Event, _now: Instant, to: &mut Streams) -> io::Result<()> {
        self.append(event, to)
    }

    fn stamped(&mut self, stamped: &StampedEvent, _now: Instant, to: &mut Streams) -> io::Result<()> {
        self.append(stamped, to)
    }

    fn flush(&mut self, to: &mut Streams) -> io::Result<()> {
        to.out.write_all(&self.lines)?;
        self.lines.clear();
        self.lines.shrink_to(KEPT_BYTES);
        to.out.flush()
    }
}
