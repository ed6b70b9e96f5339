//! The format `text`: only the final answer, for `answer=$(teamster run ...)`.

use std::io;
use std::time::Instant;

use teamster::Event;

use super::renderer::{Renderer, Screen, Streams};
use crate::printable::Printable;

pub(super) struct Text {
    screen: Screen,
}

impl Text {
    pub(super) fn new(screen: Screen) -> Self {
        Self { screen }
    }
}

impl Renderer for Text {
    fn event(&mut self, event: &Event, _now: Instant, to: &mut Streams) -> io::Result<()> {
        let Event::Done(done) = event else { return Ok(()) };
        if done.result.is_error {
            return Ok(());
        }
        let answer = match &done.result.structured_output {
            Some(document) => document.as_str().to_owned(),
            None => done.result.final_text.clone().into_string(),
        };
        // A file receives the exact bytes; on a terminal control characters are escaped.
        if self.screen.terminal {
            Printable::prose(&answer).write_line(&mut to.out)?;
        } else {
            to.out.write_all(answer.as_bytes())?;
            to.out.write_all(b"\n")?;
        }
        to.out.flush()
    }
}
