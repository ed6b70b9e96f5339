//! The final answer alone: for `answer=$(teamster run ...)`.

use std::io;
use std::time::Instant;

use teamster::Event;

use super::plain::plain;
use super::{Renderer, Screen, Streams};

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
            Some(document) => document.to_string(),
            None => done.result.final_text.clone().into_string(),
        };
        // A file gets what was said to the byte; a terminal must not be driven by it.
        let answer = if self.screen.terminal { plain(&answer) } else { answer };
        to.out.write_all(format!("{answer}\n").as_bytes())?;
        to.out.flush()
    }
}
