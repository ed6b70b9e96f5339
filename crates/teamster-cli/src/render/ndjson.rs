//! The format `ndjson`, for programs: one event per line, as it happens.
//!
//! Lines that are ready together are written with one call.

use std::io::{self, Write as _};
use std::time::Instant;

use serde::Serialize;
use teamster::{Event, StampedEvent};

use super::json::JsonWriter;
use super::renderer::{Renderer, Streams};

/// The length of a delta up to which its line is built in one piece.
const SHORT: usize = 16 * 1024;

#[derive(Default)]
pub(super) struct Ndjson {
    /// Text that was not written yet.
    text: Vec<u8>,
}

impl Ndjson {
    fn writer<'a>(&'a mut self, to: &'a mut Streams) -> JsonWriter<'a> {
        JsonWriter { text: &mut self.text, out: &mut to.out }
    }

    fn append(&mut self, event: &Event, line: &impl Serialize, to: &mut Streams) -> io::Result<()> {
        match event {
            Event::Text(delta) | Event::Thinking(delta) if delta.text.len() <= SHORT => {
                self.writer(to).short_line(line)
            }
            _ => self.writer(to).line(line),
        }
    }
}

impl Renderer for Ndjson {
    fn event(&mut self, event: &Event, _now: Instant, to: &mut Streams) -> io::Result<()> {
        self.append(event, event, to)
    }

    fn stamped(&mut self, stamped: &StampedEvent, _now: Instant, to: &mut Streams) -> io::Result<()> {
        self.append(&stamped.event, stamped, to)
    }

    fn flush(&mut self, to: &mut Streams) -> io::Result<()> {
        self.writer(to).flush()
    }
}
