//! The output formats of a run: one file per format, each of which implements [`Renderer`].
//!
//! A renderer receives each event with its time, and writes to standard output. Failures are written to standard error,
//! identically for every format. Write errors there are ignored: a closed standard error must not cause a failure.

mod failure;
mod json;
mod ndjson;
pub(crate) mod pretty;
mod renderer;
pub(crate) mod status;
mod text;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use teamster::event::{ErrorCode, Failure};
use teamster::{Event, StampedEvent};

use crate::args::Format;
use crate::live_area::{Content, LiveArea};
use crate::printable::Printable;

pub(crate) use failure::{write_error, write_notice};
pub(crate) use json::write_document;
pub(crate) use renderer::width_of_stdout;
use renderer::{Renderer, Screen, Streams};
use status::Status;

/// The time between two updates of the live area. A terminal cannot show more.
const UPDATE_INTERVAL: Duration = Duration::from_millis(33);

/// Writes one run: its events in a format, and its failure at the end.
pub(crate) struct Output {
    renderer: Box<dyn Renderer>,
    to: Streams,
    failure: Option<Failure>,
    in_chat: bool,
    live: Option<Live>,
}

/// The live area of a run: its status.
struct Live {
    area: Arc<Mutex<LiveArea>>,
    status: Status,
    /// The time of the last update.
    updated: Option<Instant>,
}

/// The finished output above a live area.
struct AboveLiveArea(Arc<Mutex<LiveArea>>);

impl Write for AboveLiveArea {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    /// The next update of the live area writes the output.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Live {
    fn update(&mut self, now: Instant) -> io::Result<()> {
        self.updated = Some(now);
        let lines = vec![Printable::default(), self.status.line(now)];
        self.area.lock().unwrap_or_else(PoisonError::into_inner).show(Content { lines, cursor: None })
    }

    fn hide(&mut self) -> io::Result<()> {
        self.area.lock().unwrap_or_else(PoisonError::into_inner).hide()
    }
}

impl Output {
    /// Writes a run of this agent to the streams of this process. On a terminal, its status is shown while it runs.
    pub(crate) fn with_status(format: Format, agent: &str) -> Self {
        let screen = Screen::of_stdout();
        if format != Format::Pretty || !screen.is_interactive() {
            return Self::new(format);
        }
        let area = Arc::new(Mutex::new(LiveArea::of_stdout()));
        let to = Streams { out: Box::new(AboveLiveArea(Arc::clone(&area))), err: Box::new(anstream::stderr()) };
        let status = Status::new(agent, Instant::now());
        Self { live: Some(Live { area, status, updated: None }), ..Self::over(to, format, screen) }
    }

    /// Writes a run to the streams of this process.
    pub(crate) fn new(format: Format) -> Self {
        let out: Box<dyn Write + Send> = match format {
            Format::Pretty => Box::new(anstream::stdout()),
            Format::Text | Format::Ndjson | Format::Json => Box::new(io::stdout()),
        };
        Self::over(Streams { out, err: Box::new(anstream::stderr()) }, format, Screen::of_stdout())
    }

    /// Whether the output changes with time, so that [`tick`](Self::tick) must be called.
    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Updates what changes with time.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn tick(&mut self, now: Instant) -> io::Result<()> {
        self.live.as_mut().map_or(Ok(()), |live| live.update(now))
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
            live: None,
        }
    }

    fn over(to: Streams, format: Format, screen: Screen) -> Self {
        let renderer: Box<dyn Renderer> = match format {
            Format::Pretty => Box::new(pretty::Pretty::new(screen)),
            Format::Text => Box::new(text::Text::new(screen)),
            Format::Ndjson => Box::new(ndjson::Ndjson),
            Format::Json => Box::new(json::Json),
        };
        Self { renderer, to, failure: None, in_chat: false, live: None }
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
        // The end of the run is also written to standard error.
        if matches!(stamped.event, Event::Done(_))
            && let Some(mut live) = self.live.take()
        {
            live.hide()?;
            self.to.out = Box::new(anstream::stdout());
        }
        self.renderer.stamped(stamped, now, &mut self.to)?;
        self.note(&stamped.event);
        let Some(live) = &mut self.live else { return Ok(()) };
        live.status.event(&stamped.event, now);
        if live.updated.is_none_or(|updated| now.saturating_duration_since(updated) >= UPDATE_INTERVAL) {
            live.update(now)?;
        }
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
        if let Some(live) = &mut self.live {
            live.hide()?;
        }
        let _ = text.write_line(&mut self.to.err).and_then(|()| self.to.err.flush());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
