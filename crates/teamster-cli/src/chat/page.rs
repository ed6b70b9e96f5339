//! Writes the conversation on a separate thread, so that a paused terminal (Ctrl-S) blocks nothing else.

use std::io;
use std::time::Instant;

use teamster::Event;
use tokio::sync::{mpsc, oneshot};

use crate::args::ToolOutput;
use crate::printable::Printable;
use crate::render::Output;

/// The number of items that wait for the writer.
const WAITING: usize = 16;

/// An item for the writer.
#[derive(Debug)]
pub(super) enum Item {
    Event(Instant, Box<Event>),
    /// A message of the command itself.
    Message(Printable),
    /// A turn of this agent starts.
    Turn(Printable),
    /// Updates what changes with time.
    Tick,
    /// Notifies the sender once all earlier items are written. Then the editor uses the terminal.
    Flush(oneshot::Sender<()>),
}

/// Starts the writer thread. The channel closes when a write fails.
pub(super) fn start(agent: &str, tool_output: Option<ToolOutput>) -> io::Result<mpsc::Sender<Item>> {
    let (sender, mut items) = mpsc::channel(WAITING);
    let mut output = Output::of_chat(agent, tool_output);
    let mut write = move || -> io::Result<()> {
        while let Some(item) = items.blocking_recv() {
            match item {
                Item::Event(time, event) => output.event(&event, time)?,
                Item::Message(text) => output.message(&text)?,
                Item::Turn(agent) => output.start_turn(&agent, Instant::now()),
                Item::Tick => output.tick(Instant::now())?,
                Item::Flush(flushed) => {
                    output.pause()?;
                    // The receiver may have been dropped.
                    _ = flushed.send(());
                }
            }
        }
        Ok(())
    };
    // The next send fails after a write error, which ends the conversation.
    std::thread::Builder::new().name("writer".to_owned()).spawn(move || drop(write()))?;
    Ok(sender)
}
