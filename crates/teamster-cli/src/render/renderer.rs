//! The interface of the output formats.

use std::io::{self, IsTerminal as _, Write};
use std::time::Instant;

use teamster::{Event, StampedEvent};

use crate::printable::Printable;

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

    /// Writes what the format has collected. Called after the events that were ready together.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    fn flush(&mut self, _to: &mut Streams) -> io::Result<()> {
        Ok(())
    }

    /// Returns the lines that follow the written output, but may still change.
    fn tail(&mut self) -> Vec<Printable> {
        Vec::new()
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
    /// Whether it shows styles.
    pub(crate) styles: bool,
}

/// The maximum number of columns of text. Longer lines are hard to read.
const MAX_TEXT_WIDTH: usize = 100;

/// The number of columns if standard output is not a terminal.
const PAGE_WIDTH: usize = 120;

impl Screen {
    pub(super) fn of_stdout() -> Self {
        let terminal = io::stdout().is_terminal();
        let styles = terminal && anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        Self { width: width_of_stdout(), terminal, styles }
    }

    /// Returns the current width for text. A terminal may have been resized.
    pub(super) fn text_width(&self) -> usize {
        // In the last column, terminals differ in when they wrap.
        let width = if self.terminal { width_of_stdout() } else { self.width };
        width.saturating_sub(1).min(MAX_TEXT_WIDTH)
    }

    /// Whether output can be redrawn: on a terminal that can move its cursor, and not in CI.
    pub(super) fn is_interactive(&self) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_plain =
            || std::env::var("TERM").is_ok_and(|name| ["", "dumb", "cons25", "emacs"].contains(&name.as_str()));
        self.terminal && is_set("TERM") && !is_plain() && !is_set("CI")
    }
}

/// Whether standard output can be redrawn: it is a terminal that can move its cursor, and not in CI.
pub(crate) fn is_interactive() -> bool {
    Screen::of_stdout().is_interactive()
}

/// Returns the current number of columns of standard output. It changes when a terminal is resized.
pub(crate) fn width_of_stdout() -> usize {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    width.filter(|width| *width > 0).unwrap_or(PAGE_WIDTH)
}
