//! `teamster run`: one run, shown as it happens, steered by signals.
//!
//! What is shown is written by a thread of its own. However slow its reader, signals are still heard and the agent's
//! output is still taken; and a reader that takes nothing cannot hold the command once it was told to end.

use std::io::{self, IsTerminal as _};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use teamster::{Event, Run, StampedEvent};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::args::RunArgs;
use crate::begin::{ASKED_TO_STOP, ENDING, LAST_WORDS, at, carry_out, refuse};
use crate::exit;
use crate::job::{self, Job, Machine};
use crate::printable::{Printable, printable};
use crate::render::{Output, write_error};
use crate::signals::{Signal, Signals};

/// Events that wait for the writer. Those behind them wait in the run, which bounds its memory.
const WAITING_EVENTS: usize = 16;
/// What the writer is given.
enum Item {
    /// An event with its place in the queue.
    Event(Instant, Box<StampedEvent>, OwnedSemaphorePermit),
    Notice(Printable),
}

/// Carries out the command and tells its exit code.
pub(crate) fn main(args: RunArgs) -> u8 {
    match job::check(args, &mut Machine) {
        Ok(job) => carry_out(run(job)),
        Err(error) => refuse(&Printable::error(&error), error.hint()),
    }
}

async fn run(job: Job) -> io::Result<u8> {
    let runtime = job.runtime;
    // Before anything is started: from now on no signal leaves something behind.
    let mut signals = Signals::catch()?;
    let (items, written) = start_writer(Output::new(job.format))?;
    let patience = job.request.limits.grace + LAST_WORDS;
    let run = match runtime.run(&job.agent, job.request) {
        Ok(run) => run,
        Err(error) => return Ok(refuse(&Printable::error(&error), None)),
    };
    let control = run.control();
    let notices = items.downgrade();
    let code = {
        let mut shown = pin!(show(run, items, written));
        let mut asked = false;
        let mut give_up = None;
        loop {
            tokio::select! {
                code = &mut shown => break code,
                () = at(give_up) => break exit::INTERRUPTED,
                signal = signals.next() => match signal {
                    Signal::Interrupt if asked => {
                        control.abort();
                        if give_up.is_none() {
                            give_up = Some(tokio::time::Instant::now() + patience);
                            notify(&notices, ENDING);
                        }
                    }
                    Signal::Interrupt | Signal::Terminate => {
                        asked = true;
                        control.interrupt();
                        if signal == Signal::Interrupt {
                            notify(&notices, ASKED_TO_STOP);
                        }
                    }
                },
            }
        }
    };
    runtime.shutdown().await;
    Ok(code)
}

/// Starts the writer; its end tells how it fared.
///
/// The channel is bounded by the places that events take, and by there being two notices at most: they never wait.
fn start_writer(mut output: Output) -> io::Result<(mpsc::UnboundedSender<Item>, oneshot::Receiver<io::Result<()>>)> {
    let (sender, mut items) = mpsc::unbounded_channel();
    let (end, written) = oneshot::channel();
    let mut write = move || {
        while let Some(item) = items.blocking_recv() {
            match item {
                Item::Event(time, event, _place) => output.stamped(&event, time)?,
                Item::Notice(text) => output.notice(&text)?,
            }
        }
        Ok(())
    };
    let body = move || drop(end.send(write()));
    std::thread::Builder::new().name("writer".to_owned()).spawn(body)?;
    Ok((sender, written))
}

/// Passes the run's events to the writer, until both are at their end.
async fn show(mut run: Run, items: mpsc::UnboundedSender<Item>, written: oneshot::Receiver<io::Result<()>>) -> u8 {
    let places = Arc::new(Semaphore::new(WAITING_EVENTS));
    let mut written = pin!(written);
    let mut fared = None;
    let mut code = exit::FAILURE;
    loop {
        tokio::select! {
            event = run.next_stamped() => {
                let Some(event) = event else { break };
                if let Event::Done(done) = &event.event {
                    code = exit::of_result(&done.result);
                }
                let now = Instant::now();
                if let Ok(place) = Arc::clone(&places).acquire_owned().await {
                    // Without a writer it goes nowhere.
                    let _ = items.send(Item::Event(now, Box::new(event), place));
                }
            }
            // Nobody reads on: the agent need not work on.
            end = &mut written, if fared.is_none() => {
                fared = Some(end);
                run.control().interrupt();
            }
        }
    }
    drop(items);
    let fared = match fared {
        Some(end) => end,
        None => written.await,
    };
    match fared {
        Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => exit::NO_READER,
        Ok(Err(error)) => {
            write_error(
                &mut anstream::stderr(),
                &printable!("cannot write to standard output: {}", Printable::error(&error)),
                None,
            );
            exit::FAILURE
        }
        _ => code,
    }
}

/// Tells the person who pressed Ctrl-C what comes of it, after the events that wait already.
fn notify(notices: &mpsc::WeakUnboundedSender<Item>, text: &'static str) {
    // The terminal has written `^C` at the beginning of the line, or somewhere in it.
    let start = if io::stderr().is_terminal() { "\r" } else { "" };
    if let Some(notices) = notices.upgrade() {
        let _ = notices.send(Item::Notice(printable!("{}{}", start, text)));
    }
}
