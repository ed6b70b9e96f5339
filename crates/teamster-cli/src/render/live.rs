//! The live area of a run: the output that may still change, and the status.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use teamster::Event;

use super::status::Status;
use crate::live_area::{Content, LiveArea};
use crate::printable::Printable;

/// The time between two updates. A terminal cannot show more.
const UPDATE_INTERVAL: Duration = Duration::from_millis(33);

/// The live area on standard output. It is empty unless a run is shown.
pub(super) struct Live {
    area: Arc<Mutex<LiveArea>>,
    /// The status of the run that is shown.
    status: Option<Status>,
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
        let above = Box::new(AboveLiveArea(Arc::clone(&area)));
        (Self { area, status: None, is_paused: false, updated: None }, above)
    }

    /// Shows the status of a run that starts now.
    pub(super) fn start(&mut self, status: Status) {
        (self.status, self.is_paused, self.updated) = (Some(status), false, None);
    }

    /// Notes an event. Returns whether an update is due.
    pub(super) fn event(&mut self, event: &Event, now: Instant) -> bool {
        let Some(status) = &mut self.status else { return false };
        status.event(event, now);
        self.is_paused = false;
        self.updated.is_none_or(|updated| now.saturating_duration_since(updated) >= UPDATE_INTERVAL)
    }

    /// Writes the finished output, and shows the lines that may still change and the status.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(super) fn update(&mut self, tail: Vec<Printable>, now: Instant) -> io::Result<()> {
        let Some(status) = self.status.as_ref().filter(|_| !self.is_paused) else { return Ok(()) };
        self.updated = Some(now);
        let lines = tail.into_iter().chain([Printable::default(), status.line(now)]).collect();
        lock(&self.area).show(Content { lines, cursor: None })
    }

    /// Erases the area until the next update, for a message on standard error.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(super) fn hide(&mut self) -> io::Result<()> {
        lock(&self.area).hide()
    }

    /// Empties the area until the next event, since others use the terminal.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(super) fn pause(&mut self) -> io::Result<()> {
        self.is_paused = true;
        lock(&self.area).clear()
    }

    /// Empties the area until the next run.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.status = None;
        lock(&self.area).clear()
    }
}

fn lock(area: &Mutex<LiveArea>) -> MutexGuard<'_, LiveArea> {
    area.lock().unwrap_or_else(PoisonError::into_inner)
}
