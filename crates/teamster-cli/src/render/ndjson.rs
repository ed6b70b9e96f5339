//! The format `ndjson`, for programs: one event per line, as it happens.

use std::io;
use std::time::Instant;

use teamster::{Event, StampedEvent};

use super::json::write_document;
use super::renderer::{Renderer, Streams};

pub(super) struct Ndjson;

impl Renderer for Ndjson {
    fn event(&mut self, event: &Event, _now: Instant, to: &mut Streams) -> io::Result<()> {
        write_document(&serde_json::to_string(event)?, &mut to.out)
    }

    fn stamped(&mut self, stamped: &StampedEvent, _now: Instant, to: &mut Streams) -> io::Result<()> {
        write_document(&serde_json::to_string(stamped)?, &mut to.out)
    }
}
