//! The output of a chat: its turns, and the input box below them.

use std::io::{self, Write as _};
use std::time::Instant;

use super::Output;
use super::live::Live;
use super::status::Status;
use crate::live_area::Content;
use crate::printable::Printable;

impl Output {
    /// Shows the status of a turn of this agent that starts now.
    pub(crate) fn start_turn(&mut self, agent: &Printable, now: Instant) {
        if let Some(live) = &mut self.live {
            live.start(Status::new(agent.clone(), now));
        }
    }

    /// Shows the input box of a chat below the output.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn show_input(&mut self, content: Content, now: Instant) -> io::Result<()> {
        if let Some(live) = &mut self.live {
            live.set_below(content);
        }
        self.tick(now)
    }

    /// Writes text without a line end: the prompt of a terminal without a live area.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn prompt(&mut self, text: &Printable) -> io::Result<()> {
        self.renderer.end_line(&mut self.to)?;
        text.write(&mut self.to.out)?;
        self.to.out.flush()
    }

    /// Clears the screen. The output before stays in the scrollback of most terminals.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn clear_screen(&mut self, now: Instant) -> io::Result<()> {
        let Some(live) = &self.live else { return Ok(()) };
        live.area().clear_screen()?;
        self.tick(now)
    }

    /// Copies a text to the clipboard of the terminal, if it has a live area.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        self.live.as_ref().map_or(Ok(()), |live| live.area().copy(text))
    }

    /// Writes everything, and leaves the terminal to others until [`resume`](Self::resume).
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn pause(&mut self) -> io::Result<()> {
        self.live.as_mut().map_or(Ok(()), Live::pause)
    }

    /// Ends an incomplete text, and erases the live area for good.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.pause()?;
        self.renderer.end_line(&mut self.to)
    }

    /// Uses the terminal again.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written.
    pub(crate) fn resume(&mut self, now: Instant) -> io::Result<()> {
        if let Some(live) = &mut self.live {
            live.resume();
        }
        self.tick(now)
    }
}
