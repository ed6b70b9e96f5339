//! Writes the conversation and the input box on a separate thread, so that a slow terminal blocks nothing else.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use teamster::Event;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::args::ToolOutput;
use crate::live_area::Content;
use crate::printable::Printable;
use crate::render::Output;

/// The number of events that wait for the writer. Further events wait in the turn, which bounds its memory.
const WAITING_EVENTS: usize = 16;

/// An item for the writer.
#[derive(Debug)]
enum Item {
    Event(Instant, Box<Event>, Option<OwnedSemaphorePermit>),
    /// A message of the command itself.
    Message(Printable),
    /// A prompt without a line end, on a terminal without a live area.
    Prompt(Printable),
    /// A turn of this agent starts.
    Turn(Printable),
    /// Updates the input box and what changes with time.
    Refresh,
    /// Copies a text to the clipboard.
    Copy(String),
    /// Clears the screen.
    Clear,
    /// Notifies the sender once all earlier items are written.
    Flush(oneshot::Sender<()>),
    /// Erases the live area until `Resume`, and notifies the sender.
    Pause(oneshot::Sender<()>),
    Resume,
    /// Ends the agent's text, and erases the live area for good.
    Finish,
}

/// The sender of the writer thread.
///
/// The channel is unbounded, but its content is limited: each event needs a permit, one refresh waits at a time, and all
/// other items follow a key.
#[derive(Debug)]
pub(super) struct Page {
    items: mpsc::UnboundedSender<Item>,
    permits: Arc<Semaphore>,
    shared: Arc<Shared>,
    is_live: bool,
}

/// The newest input box.
#[derive(Debug, Default)]
struct Shared {
    input: Mutex<Content>,
    refresh_waits: AtomicBool,
}

impl Page {
    /// Starts the writer thread. The channel closes when a write fails.
    pub(super) fn start(agent: &str, tool_output: Option<ToolOutput>) -> io::Result<Self> {
        let (items, receiver) = mpsc::unbounded_channel();
        let output = Output::of_chat(agent, tool_output);
        let (shared, is_live) = (Arc::new(Shared::default()), output.is_live());
        let mut writer = Writer { output, shared: Arc::clone(&shared), is_live, in_text: false, held: Vec::new() };
        std::thread::Builder::new().name("writer".to_owned()).spawn(move || drop(writer.run(receiver)))?;
        Ok(Self { items, permits: Arc::new(Semaphore::new(WAITING_EVENTS)), shared, is_live })
    }

    /// Whether the terminal has a live area: an input box that is redrawn.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Waits until the writer accepts an event. Cancel-safe.
    pub(super) async fn event_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// Prints an event. It has no permit if the caller bounds the number of such events.
    pub(super) fn event(&self, event: Event, permit: Option<OwnedSemaphorePermit>) {
        self.send(Item::Event(Instant::now(), Box::new(event), permit));
    }

    /// Prints a message of the command itself. In a text of the agent, it is printed after the text.
    pub(super) fn message(&self, text: Printable) {
        self.send(Item::Message(text));
    }

    pub(super) fn prompt(&self, text: Printable) {
        self.send(Item::Prompt(text));
    }

    pub(super) fn start_turn(&self, agent: Printable) {
        self.send(Item::Turn(agent));
    }

    /// Shows the input box.
    pub(super) fn show_input(&self, content: Content) {
        *self.shared.input.lock().unwrap_or_else(PoisonError::into_inner) = content;
        self.refresh();
    }

    /// Updates what changes with time.
    pub(super) fn refresh(&self) {
        if !self.shared.refresh_waits.swap(true, Ordering::AcqRel) {
            self.send(Item::Refresh);
        }
    }

    pub(super) fn copy(&self, text: String) {
        self.send(Item::Copy(text));
    }

    pub(super) fn clear(&self) {
        self.send(Item::Clear);
    }

    pub(super) fn resume(&self) {
        self.send(Item::Resume);
    }

    /// Prints what was shown in the live area, and erases it for good.
    pub(super) fn finish(&self) {
        self.send(Item::Finish);
    }

    /// Returns a receiver that is notified once everything is written.
    pub(super) fn flush(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.send(Item::Flush(sender));
        receiver
    }

    /// Returns a receiver that is notified once everything is written and the live area is erased.
    pub(super) fn pause(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.send(Item::Pause(sender));
        receiver
    }

    /// Waits until the terminal cannot be written any more. Cancel-safe.
    pub(super) async fn closed(&self) {
        self.items.closed().await;
    }

    fn send(&self, item: Item) {
        // The writer has ended if the terminal is closed, which `closed` reports.
        _ = self.items.send(item);
    }
}

struct Writer {
    output: Output,
    shared: Arc<Shared>,
    is_live: bool,
    /// Whether the agent's text may continue.
    in_text: bool,
    /// Messages that follow the text.
    held: Vec<Printable>,
}

impl Writer {
    fn run(&mut self, mut items: mpsc::UnboundedReceiver<Item>) -> io::Result<()> {
        while let Some(item) = items.blocking_recv() {
            self.write(item)?;
        }
        Ok(())
    }

    fn write(&mut self, item: Item) -> io::Result<()> {
        match item {
            Item::Event(time, event, _permit) => {
                if !matches!(*event, Event::Text(_)) {
                    self.end_text()?;
                }
                self.in_text = matches!(*event, Event::Text(_));
                self.output.event(&event, time)
            }
            // The Markdown of a text must not be interrupted.
            Item::Message(text) if self.in_text && self.is_live => {
                self.held.push(text);
                Ok(())
            }
            Item::Message(text) => self.output.message(&text),
            Item::Prompt(text) => self.output.prompt(&text),
            Item::Turn(agent) => {
                self.output.start_turn(&agent, Instant::now());
                Ok(())
            }
            Item::Refresh => {
                self.shared.refresh_waits.store(false, Ordering::Release);
                let input = self.shared.input.lock().unwrap_or_else(PoisonError::into_inner).clone();
                self.output.show_input(input, Instant::now())
            }
            Item::Copy(text) => self.output.copy(&text),
            Item::Clear => self.output.clear_screen(Instant::now()),
            Item::Flush(flushed) => {
                self.output.tick(Instant::now())?;
                // The receiver may have been dropped.
                _ = flushed.send(());
                Ok(())
            }
            Item::Pause(paused) => {
                self.output.pause()?;
                _ = paused.send(());
                Ok(())
            }
            Item::Resume => self.output.resume(Instant::now()),
            Item::Finish => {
                self.output.finish()?;
                self.end_text()
            }
        }
    }

    fn end_text(&mut self) -> io::Result<()> {
        self.in_text = false;
        std::mem::take(&mut self.held).iter().try_for_each(|text| self.output.message(text))
    }
}
