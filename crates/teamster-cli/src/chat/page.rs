//! What is shown, written by a thread of its own: a terminal that is held (Ctrl-S) holds nothing else.

use std::io;
use std::time::Instant;

use teamster::Event;
use tokio::sync::{mpsc, oneshot};

use crate::printable::Printable;
use crate::render::Output;

/// Items that wait for the writer.
const WAITING: usize = 16;

/// Something to show.
#[derive(Debug)]
pub(super) enum Item {
    Event(Instant, Box<Event>),
    /// Lines of ours.
    Say(Printable),
    /// Tells when all before it is written.
    Settle(oneshot::Sender<()>),
}

/// Starts the writer. The channel closes when nothing can be written any more.
pub(super) fn start() -> io::Result<mpsc::Sender<Item>> {
    let (sender, mut items) = mpsc::channel(WAITING);
    let mut output = Output::of_chat();
    let mut write = move || -> io::Result<()> {
        while let Some(item) = items.blocking_recv() {
            match item {
                Item::Event(time, event) => output.event(&event, time)?,
                Item::Say(text) => output.say(&text)?,
                // Who waits for it may have gone.
                Item::Settle(settled) => _ = settled.send(()),
            }
        }
        Ok(())
    };
    // Without a terminal the conversation is over: whoever writes next finds the channel closed.
    std::thread::Builder::new().name("writer".to_owned()).spawn(move || drop(write()))?;
    Ok(sender)
}
