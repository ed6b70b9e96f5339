//! The output formats of a run: one file per format, each of which implements [`Renderer`].
//!
//! A renderer receives each event with its time, and writes to standard output. Failures are written to standard error,
//! identically for every format. Write errors there are ignored: a closed standard error must not cause a failure.

mod failure;
mod json;
mod ndjson;
pub(crate) mod pretty;
mod renderer;
mod text;

use std::io::{self, Write};
use std::time::Instant;

use teamster::event::{ErrorCode, Failure};
use teamster::{Event, StampedEvent};

use crate::args::Format;
use crate::printable::Printable;

pub(crate) use failure::{write_error, write_notice};
pub(crate) use json::write_document;
pub(crate) use renderer::width_of_stdout;
use renderer::{Renderer, Screen, Streams};

/// Writes one run: its events in a format, and its failure at the end.
pub(crate) struct Output {
    renderer: Box<dyn Renderer>,
    to: Streams,
    failure: Option<Failure>,
    in_chat: bool,
}

impl Output {
    /// Writes a run to the streams of this process.
    pub(crate) fn new(format: Format) -> Self {
        let out: Box<dyn Write + Send> = match format {
            Format::Pretty => Box::new(anstream::stdout()),
            Format::Text | Format::Ndjson | Format::Json => Box::new(io::stdout()),
        };
        Self::over(Streams { out, err: Box::new(anstream::stderr()) }, format, Screen::of_stdout())
    }

    /// Writes a chat to the streams of this process.
    pub(crate) fn of_chat() -> Self {
        let styles = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let to = Streams { out: Box::new(anstream::stdout()), err: Box::new(anstream::stderr()) };
        Self {
            renderer: Box::new(pretty::Pretty::of_chat(Screen::of_stdout(), styles)),
            to,
            failure: None,
            in_chat: true,
        }
    }

    fn over(to: Streams, format: Format, screen: Screen) -> Self {
        let renderer: Box<dyn Renderer> = match format {
            Format::Pretty => Box::new(pretty::Pretty::new(screen)),
            Format::Text => Box::new(text::Text::new(screen)),
            Format::Ndjson => Box::new(ndjson::Ndjson),
            Format::Json => Box::new(json::Json),
        };
        Self { renderer, to, failure: None, in_chat: false }
    }

    /// Writes an event that arrived at this time.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn event(&mut self, event: &Event, now: Instant) -> io::Result<()> {
        self.renderer.event(event, now, &mut self.to)?;
        self.note(event);
        Ok(())
    }

    /// Writes an event with its run id and time.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn stamped(&mut self, stamped: &StampedEvent, now: Instant) -> io::Result<()> {
        self.renderer.stamped(stamped, now, &mut self.to)?;
        self.note(&stamped.event);
        Ok(())
    }

    /// Stores a failure, and writes it after `done`.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Error(failure) => self.failure = Some((**failure).clone()),
            Event::Done(done) => {
                let failure = self.failure.take();
                // In a chat the hint on how to resume after Ctrl-C is not needed.
                if self.in_chat && failure.as_ref().is_some_and(|failure| failure.code == ErrorCode::Aborted) {
                    let _ = Printable::from("interrupted").write_line(&mut self.to.err);
                } else if let Some(failure) = failure {
                    failure::write_failure(&mut self.to.err, &failure, &done.result);
                }
            }
            _ => {}
        }
    }

    /// Writes a message of the command itself to standard output.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn message(&mut self, text: &Printable) -> io::Result<()> {
        self.renderer.end_line(&mut self.to)?;
        text.write_line(&mut self.to.out)?;
        self.to.out.flush()
    }

    /// Writes a notice to standard error, on a separate line.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn notice(&mut self, text: &Printable) -> io::Result<()> {
        self.renderer.end_line(&mut self.to)?;
        let _ = text.write_line(&mut self.to.err).and_then(|()| self.to.err.flush());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
