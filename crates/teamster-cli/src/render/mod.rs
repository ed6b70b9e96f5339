//! The output formats of a run: one file per format, each of which implements [`Renderer`].
//!
//! A renderer receives each event with its time, and writes to standard output. Failures are written to standard error,
//! identically for every format. Write errors there are ignored: a closed standard error must not cause a failure.

mod chat;
mod failure;
mod held_logs;
mod json;
mod live;
mod ndjson;
pub(crate) mod pretty;
mod renderer;
pub(crate) mod status;
mod text;
mod waiting;

use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

use teamster::event::{ErrorCode, Failure};
use teamster::{Event, StampedEvent};

use crate::args::{Format, ToolOutput};
use crate::printable::Printable;

#[cfg(feature = "serve")]
pub(crate) use failure::write_warning;
pub(crate) use failure::{Hints, where_to_resume, write_error, write_notice};
use held_logs::HeldLogs;
pub(crate) use held_logs::{LogStream, release as release_logs};
pub(crate) use json::{JsonWriter, write_document};
use live::Live;
pub(crate) use renderer::is_interactive;
pub(crate) use renderer::width_of_stdout;
use renderer::{Renderer, Screen, Streams};
use status::Status;

/// The time between two calls of [`Output::tick`].
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Writes one run: its events in a format, and its failure at the end.
pub(crate) struct Output {
    renderer: Box<dyn Renderer>,
    to: Streams,
    failure: Option<Failure>,
    /// The agent's name.
    agent: String,
    hints: Hints,
    live: Option<Live>,
    logs: Option<HeldLogs>,
}

impl Output {
    /// Writes a run of this agent to the streams of this process. On a terminal, its status is shown while it runs.
    pub(crate) fn with_status(format: Format, agent: &str, tool_output: Option<ToolOutput>) -> Self {
        let screen = Screen::of_stdout();
        if format != Format::Pretty || !screen.is_interactive() {
            return Self::new(format, agent, tool_output);
        }
        let (mut live, out) = Live::of_stdout();
        live.start(Status::new(Printable::exact(agent), Instant::now()));
        let (logs, out) = HeldLogs::start(out);
        let to = Streams { out, err: Box::new(anstream::stderr()) };
        Self {
            live: Some(live),
            logs,
            ..Self::over(to, format, agent, screen, tool_output.unwrap_or(ToolOutput::Short))
        }
    }

    /// Writes a run to the streams of this process.
    pub(crate) fn new(format: Format, agent: &str, tool_output: Option<ToolOutput>) -> Self {
        let screen = Screen::of_stdout();
        let tool_output = tool_output.unwrap_or(if screen.terminal { ToolOutput::Short } else { ToolOutput::None });
        let out: Box<dyn Write + Send> = match format {
            Format::Pretty => Box::new(anstream::stdout()),
            Format::Text | Format::Ndjson | Format::Json => Box::new(io::stdout()),
        };
        let (logs, out) = match format {
            Format::Pretty | Format::Text => HeldLogs::start(out),
            Format::Ndjson | Format::Json => (None, out),
        };
        let to = Streams { out, err: Box::new(anstream::stderr()) };
        Self { logs, ..Self::over(to, format, agent, screen, tool_output) }
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
        self.write_logs()?;
        let Some(live) = &mut self.live else { return Ok(()) };
        live.update(self.renderer.tail(), now)
    }

    /// Writes the log lines that waited for the end of a line.
    fn write_logs(&mut self) -> io::Result<()> {
        let Some(lines) = self.logs.as_ref().and_then(HeldLogs::take) else { return Ok(()) };
        if let Some(live) = &mut self.live {
            live.hide()?;
        }
        // A closed standard error must not cause a failure.
        _ = self.to.err.write_all(&lines).and_then(|()| self.to.err.flush());
        Ok(())
    }

    /// Writes a chat to the streams of this process.
    pub(crate) fn of_chat(agent: &str, tool_output: Option<ToolOutput>) -> Self {
        let screen = Screen::of_stdout();
        let (live, out) = if screen.is_interactive() {
            let (live, out) = Live::of_stdout();
            (Some(live), out)
        } else {
            (None, Box::new(anstream::stdout()) as Box<dyn Write + Send>)
        };
        let (logs, out) = HeldLogs::start(out);
        let renderer =
            Box::new(pretty::Pretty::of_chat(screen).with_tool_output(tool_output.unwrap_or(ToolOutput::Short)));
        // On the same terminal, errors must not be written into the live area.
        let err = match &live {
            Some(live) if io::stderr().is_terminal() => live.stream(),
            _ => Box::new(anstream::stderr()),
        };
        Self {
            renderer,
            to: Streams { out, err },
            failure: None,
            agent: agent.to_owned(),
            hints: Hints::Chat,
            live,
            logs,
        }
    }

    /// Replaces the hints of failures.
    #[cfg(feature = "serve")]
    pub(crate) fn with_hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    fn over(to: Streams, format: Format, agent: &str, screen: Screen, tool_output: ToolOutput) -> Self {
        let renderer: Box<dyn Renderer> = match format {
            Format::Pretty => Box::new(pretty::Pretty::new(screen).with_tool_output(tool_output)),
            Format::Text => Box::new(text::Text::new(screen)),
            Format::Ndjson => Box::new(ndjson::Ndjson::default()),
            Format::Json => Box::new(json::Json),
        };
        let hints = Hints::Run { directory: None };
        Self { renderer, to, failure: None, agent: agent.to_owned(), hints, live: None, logs: None }
    }

    /// Writes an event that arrived at this time.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn event(&mut self, event: &Event, now: Instant) -> io::Result<()> {
        self.before(event)?;
        self.renderer.event(event, now, &mut self.to)?;
        self.renderer.flush(&mut self.to)?;
        self.after(event, now)
    }

    /// Writes events that are ready together, with their run ids and times.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn batch(&mut self, events: &[StampedEvent], now: Instant) -> io::Result<()> {
        for stamped in events {
            self.before(&stamped.event)?;
            self.renderer.stamped(stamped, now, &mut self.to)?;
            if matches!(stamped.event, Event::Done(_)) {
                self.renderer.flush(&mut self.to)?;
            }
            self.after(&stamped.event, now)?;
        }
        self.renderer.flush(&mut self.to)
    }

    /// The end of a run is also written to standard error, so the live area is emptied before.
    fn before(&mut self, event: &Event) -> io::Result<()> {
        match &mut self.live {
            Some(live) if matches!(event, Event::Done(_)) => live.end(),
            _ => Ok(()),
        }
    }

    fn after(&mut self, event: &Event, now: Instant) -> io::Result<()> {
        self.note(event);
        self.write_logs()?;
        let Some(live) = &mut self.live else { return Ok(()) };
        if live.event(event, now) {
            live.update(self.renderer.tail(), now)?;
        }
        Ok(())
    }

    /// Stores a failure, and writes it after `done`.
    fn note(&mut self, event: &Event) {
        match event {
            Event::Init(init) => {
                self.agent.clone_from(&init.agent);
                if let Hints::Run { directory } = &mut self.hints {
                    let current = std::env::current_dir().ok();
                    *directory = init.cwd.clone().filter(|cwd| current.as_ref() != Some(cwd));
                }
            }
            Event::Error(failure) => self.failure = Some((**failure).clone()),
            Event::Done(done) => {
                let failure = self.failure.take();
                if self.hints == Hints::Chat
                    && failure.as_ref().is_some_and(|failure| failure.code == ErrorCode::Aborted)
                {
                    let _ = Printable::from("interrupted").write_line(&mut self.to.err);
                } else if let Some(failure) = failure {
                    failure::write_failure(&mut self.to.err, &failure, &done.result, &self.agent, &self.hints);
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
        self.to.out.flush()?;
        self.tick(Instant::now())
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
