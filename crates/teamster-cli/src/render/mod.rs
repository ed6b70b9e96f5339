//! The output formats of a run: one file per format, each of which implements [`Renderer`].
//!
//! A renderer receives each event with its time, and writes to standard output. Failures are written to standard error,
//! identically for every format. Write errors there are ignored: a closed standard error must not cause a failure.

mod failure;
mod json;
mod ndjson;
pub(crate) mod pretty;
mod text;

use std::io::{self, IsTerminal as _, Write};
use std::time::Instant;

use teamster::event::{ErrorCode, Failure};
use teamster::{Event, StampedEvent};

use crate::args::Format;
use crate::printable::Printable;

pub(crate) use failure::{write_error, write_notice};
pub(crate) use json::write_document;

/// An output format.
pub(crate) trait Renderer: Send {
    /// Writes an event.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    fn event(&mut self, event: &Event, now: Instant, to: &mut Streams) -> io::Result<()>;

    /// Writes an event of a live run, with its run id and its time if the format has them.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    fn stamped(&mut self, stamped: &StampedEvent, now: Instant, to: &mut Streams) -> io::Result<()> {
        self.event(&stamped.event, now, to)
    }

    /// Ends an incomplete line before other output is written.
    fn end_line(&mut self, _to: &mut Streams) -> io::Result<()> {
        Ok(())
    }
}

/// The streams of a renderer.
pub(crate) struct Streams {
    pub(crate) out: Box<dyn Write + Send>,
    pub(crate) err: Box<dyn Write + Send>,
}

/// The properties of standard output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// The number of columns.
    pub(crate) width: usize,
    /// Whether it is a terminal.
    pub(crate) terminal: bool,
}

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

/// The number of columns if standard output is not a terminal.
const PAGE_WIDTH: usize = 120;

impl Screen {
    fn of_stdout() -> Self {
        Self { width: width_of_stdout(), terminal: io::stdout().is_terminal() }
    }
}

/// Returns the current number of columns of standard output. It changes when a terminal is resized.
pub(crate) fn width_of_stdout() -> usize {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    width.filter(|width| *width > 0).unwrap_or(PAGE_WIDTH)
}

#[cfg(test)]
mod tests;
