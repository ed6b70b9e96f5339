//! How a run is shown: one file a format, all over the same small trait.
//!
//! A renderer is told each event with the time when it came, and writes. What stands on standard output is the
//! format's; what went wrong is said on standard error, the same for every format. What cannot be written there is let
//! go: a closed standard error is no reason to fail.

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

/// A format.
pub(crate) trait Renderer: Send {
    /// Shows an event.
    ///
    /// # Errors
    /// When standard output does not take what is written.
    fn event(&mut self, event: &Event, now: Instant, to: &mut Streams) -> io::Result<()>;

    /// Shows an event of a run that is going on, with its run and its time where the format has them.
    ///
    /// # Errors
    /// When standard output does not take what is written.
    fn stamped(&mut self, stamped: &StampedEvent, now: Instant, to: &mut Streams) -> io::Result<()> {
        self.event(&stamped.event, now, to)
    }

    /// Ends a line that is only begun, since something else is about to be said.
    fn end_line(&mut self, _to: &mut Streams) -> io::Result<()> {
        Ok(())
    }
}

/// Where is written.
pub(crate) struct Streams {
    pub(crate) out: Box<dyn Write + Send>,
    pub(crate) err: Box<dyn Write + Send>,
}

/// What standard output is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Columns of a line.
    pub(crate) width: usize,
    /// Whether a person looks at it now.
    pub(crate) terminal: bool,
}

/// Shows one run: events in the format's way, its failure at the end.
pub(crate) struct Output {
    renderer: Box<dyn Renderer>,
    to: Streams,
    failure: Option<Failure>,
    in_chat: bool,
}

impl Output {
    /// Over this process's own streams.
    pub(crate) fn new(format: Format) -> Self {
        let out: Box<dyn Write + Send> = match format {
            Format::Pretty => Box::new(anstream::stdout()),
            Format::Text | Format::Ndjson | Format::Json => Box::new(io::stdout()),
        };
        Self::over(Streams { out, err: Box::new(anstream::stderr()) }, format, Screen::of_stdout())
    }

    /// A conversation over this process's own streams.
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

    /// Shows an event that came at this time.
    ///
    /// # Errors
    /// When standard output does not take what is written.
    pub(crate) fn event(&mut self, event: &Event, now: Instant) -> io::Result<()> {
        self.renderer.event(event, now, &mut self.to)?;
        self.note(event);
        Ok(())
    }

    /// Shows an event with its stamp.
    ///
    /// # Errors
    /// When standard output does not take what is written.
    pub(crate) fn stamped(&mut self, stamped: &StampedEvent, now: Instant) -> io::Result<()> {
        self.renderer.stamped(stamped, now, &mut self.to)?;
        self.note(&stamped.event);
        Ok(())
    }

    /// Keeps the failure for the end, and shows it then.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Error(failure) => self.failure = Some((**failure).clone()),
            Event::Done(done) => {
                let failure = self.failure.take();
                // In a conversation it goes without saying how to go on after Ctrl-C.
                if self.in_chat && failure.as_ref().is_some_and(|failure| failure.code == ErrorCode::Aborted) {
                    let _ = Printable::from("interrupted").write_line(&mut self.to.err);
                } else if let Some(failure) = failure {
                    failure::write_failure(&mut self.to.err, &failure, &done.result);
                }
            }
            _ => {}
        }
    }

    /// Says something of ours on the page.
    ///
    /// # Errors
    /// When standard output does not take what is written.
    pub(crate) fn message(&mut self, text: &Printable) -> io::Result<()> {
        self.renderer.end_line(&mut self.to)?;
        text.write_line(&mut self.to.out)?;
        self.to.out.flush()
    }

    /// Says something to the person at the terminal, in between.
    ///
    /// # Errors
    /// When standard output does not take what is written.
    pub(crate) fn notice(&mut self, text: &Printable) -> io::Result<()> {
        self.renderer.end_line(&mut self.to)?;
        let _ = text.write_line(&mut self.to.err).and_then(|()| self.to.err.flush());
        Ok(())
    }
}

/// The columns of what is no terminal.
const PAGE_WIDTH: usize = 120;

impl Screen {
    fn of_stdout() -> Self {
        Self { width: width_of_stdout(), terminal: io::stdout().is_terminal() }
    }
}

/// The columns of standard output as it is now: a terminal may have been resized.
pub(crate) fn width_of_stdout() -> usize {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    width.filter(|width| *width > 0).unwrap_or(PAGE_WIDTH)
}

#[cfg(test)]
mod tests;
