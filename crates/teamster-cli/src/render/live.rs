//! The live area of a run: the output that may still change, the status, and below it the input box of a chat.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use teamster::Event;

use super::status::Status;
use crate::live_area::{Content, Cursor, LiveArea};
use crate::printable::Printable;

/// The time between two updates. A terminal cannot show more.
const UPDATE_INTERVAL: Duration = Duration::from_millis(33);

/// The live area on standard output. It is empty unless a run is shown.
pub(super) struct Live {
    area: Arc<Mutex<LiveArea>>,
    /// The status of the run that is shown.
    status: Option<Status>,
    /// The lines below the status: the input box of a chat.
    below: Content,
    /// Whether others use the terminal.
    is_paused: bool,
    /// The time of the last update.
    updated: Option<Instant>,
}

/// The finished output above a live area.
struct AboveLiveArea(Arc<Mutex<LiveArea>>);

impl Write for AboveLiveArea {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }

    /// Writes the output if the area is empty. Otherwise the next update does.
    fn flush(&mut self) -> io::Result<()> {
        let mut area = lock(&self.0);
        if area.is_empty() { area.hide() } else { Ok(()) }
    }
}

impl Live {
    /// Creates an empty area. Returns also the stream for finished output.
    pub(super) fn of_stdout() -> (Self, Box<dyn Write + Send>) {
        let area = Arc::new(Mutex::new(LiveArea::of_stdout()));
        let live = Self { area, status: None, below: Content::default(), is_paused: false, updated: None };
        let above = live.stream();
        (live, above)
    }

    /// Returns another stream for finished output.
    pub(super) fn stream(&self) -> Box<dyn Write + Send> {
        Box::new(AboveLiveArea(Arc::clone(&self.area)))
    }

    /// Sets the lines below the status. The next update shows them.
    pub(super) fn set_below(&mut self, below: Content) {
        self.below = below;
    }

    /// Returns the area.
    pub(super) fn area(&self) -> MutexGuard<'_, LiveArea> {
        lock(&self.area)
    }

    /// Shows the status of a run that starts now.
    pub(super) fn start(&mut self, status: Status) {
        (self.status, self.is_paused, self.updated) = (Some(status), false, None);
    }

    /// Notes an event. Returns whether an update is due.
    pub(super) fn event(&mut self, event: &Event, now: Instant) -> bool {
        // At the end of a turn no further update may follow.
        let Some(status) = &mut self.status else { return true };
        status.event(event, now);
        self.updated.is_none_or(|updated| now.saturating_duration_since(updated) >= UPDATE_INTERVAL)
    }

    /// Writes the finished output, and shows the lines that may still change, the status and the lines below it.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(super) fn update(&mut self, tail: Vec<Printable>, now: Instant) -> io::Result<()> {
        if self.is_paused || self.status.is_none() && self.below.lines.is_empty() {
            return Ok(());
        }
        self.updated = Some(now);
        let mut lines = tail;
        if let Some(status) = &self.status {
            lines.extend([Printable::default(), status.line(now)]);
        }
        if !self.below.lines.is_empty() {
            lines.push(Printable::default());
        }
        let cursor = self.below.cursor.map(|cursor| Cursor { row: cursor.row + lines.len(), ..cursor });
        lines.extend(self.below.lines.iter().cloned());
        lock(&self.area).show(Content { lines, cursor })
    }

    /// Erases the area until the next update, for a message on standard error.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(super) fn hide(&mut self) -> io::Result<()> {
        lock(&self.area).hide()
    }

    /// Empties the area until [`resume`](Self::resume), since others use the terminal.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(super) fn pause(&mut self) -> io::Result<()> {
        self.is_paused = true;
        lock(&self.area).clear()
    }

    /// Allows updates again.
    pub(super) fn resume(&mut self) {
        self.is_paused = false;
    }

    /// Removes the status. Without lines below it, the area is then empty.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.status = None;
        if self.below.lines.is_empty() { lock(&self.area).clear() } else { Ok(()) }
    }
}

fn lock(area: &Mutex<LiveArea>) -> MutexGuard<'_, LiveArea> {
    area.lock().unwrap_or_else(PoisonError::into_inner)
}
