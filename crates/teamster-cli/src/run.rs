//! `teamster run`: starts one run, prints its events as they happen, and handles signals.
//!
//! A separate thread writes the output. So a slow reader delays neither the handling of signals nor the reading of the
//! agent's output, and a reader that stops reading cannot block the command after a second Ctrl-C.

use std::io::{self, IsTerminal as _};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use teamster::{Event, Run, StampedEvent};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::args::{Format, RunArgs};
use crate::exit;
use crate::option_names;
use crate::plan::{self, Progress, RunPlan, SystemInputs};
use crate::preflight;
use crate::printable::{Printable, printable};
use crate::render::{Output, TICK, width_of_stdout, write_error};
use crate::runtime::{
    FINAL_OUTPUT_TIMEOUT, KILLING_NOTICE, STOPPING_NOTICE, Threads, report_usage_error, run_command, sleep_until,
};
use crate::signals::{Signal, Signals};
use crate::usage::Journal;
use crate::verbose::{Activity, Verbose};

/// The number of batches of events that wait for the writer. Further events wait in the run, which bounds its memory.
const WAITING_BATCHES: usize = 2;

/// An item for the writer.
enum Item {
    /// Events that were ready together, with their permit for a place in the queue. Notices may split a batch.
    Events(Instant, Vec<StampedEvent>, Arc<OwnedSemaphorePermit>),
    Notice(Printable),
    /// Updates what changes with time. The flag is cleared when the writer has taken the item.
    Tick(Arc<AtomicBool>),
}

/// Runs the command and returns its exit code.
///
/// `activity` are the lines of `--verbose` from the library.
pub(crate) fn main(args: RunArgs, activity: Option<Activity>) -> u8 {
    match plan::plan_run(args, &mut SystemInputs) {
        Ok(plan) => {
            preflight::report(&plan.agent, &plan.request);
            run_command(Threads::Main, run(plan, activity))
        }
        Err(error) => report_usage_error(&option_names::in_error(&error), error.hint()),
    }
}

async fn run(plan: RunPlan, activity: Option<Activity>) -> io::Result<u8> {
    let runtime = plan.runtime;
    // Signals are caught before a process is started, so that no signal can leave a process behind.
    let mut signals = Signals::catch()?;
    let output = if plan.progress == Progress::Quiet {
        Output::new(plan.format, &plan.agent, plan.tool_output)
    } else {
        Output::with_status(plan.format, &plan.agent, plan.tool_output)
    };
    if let Some(resumed) = plan.resumed.filter(|_| plan.format == Format::Pretty && plan.progress != Progress::Quiet)
        && io::stdout().is_terminal()
    {
        // The writer reports that the output cannot be written.
        _ = resumed.summary(width_of_stdout()).write_line(&mut anstream::stdout());
    }
    let is_live = output.is_live();
    let verbose = activity.map(|activity| Verbose::new(activity, &plan.request.limits));
    let journal = Journal::open(plan.usage_journal, &plan.agent, &plan.request);
    let (items, written) = start_writer(output)?;
    let exit_timeout = plan.request.limits.grace + FINAL_OUTPUT_TIMEOUT;
    let run = match runtime.run(&plan.agent, plan.request) {
        Ok(run) => run,
        Err(error) => return Ok(report_usage_error(&option_names::in_error(&error), None)),
    };
    let control = run.control();
    let notices = items.downgrade();
    let code = {
        let mut shown = pin!(show(run, items, written, is_live, verbose, &journal));
        let mut interrupted = false;
        let mut exit_deadline = None;
        loop {
            tokio::select! {
                code = &mut shown => break code,
                () = sleep_until(exit_deadline) => break exit::INTERRUPTED,
                signal = signals.next() => match signal {
                    Signal::Interrupt if interrupted => {
                        control.abort();
                        if exit_deadline.is_none() {
                            exit_deadline = Some(tokio::time::Instant::now() + exit_timeout);
                            notify(&notices, KILLING_NOTICE);
                        }
                    }
                    Signal::Interrupt | Signal::Terminate => {
                        interrupted = true;
                        control.interrupt();
                        if signal == Signal::Interrupt {
                            notify(&notices, STOPPING_NOTICE);
                        }
                    }
                },
            }
        }
    };
    journal.close().await;
    // What still runs has had its time.
    runtime.shutdown(Duration::ZERO).await;
    Ok(code)
}

/// Starts the writer thread. The second channel returns its result.
///
/// The item channel is unbounded, but its content is limited: each batch of events needs a permit, and there are at most
/// two notices and one tick.
fn start_writer(mut output: Output) -> io::Result<(mpsc::UnboundedSender<Item>, oneshot::Receiver<io::Result<()>>)> {
    let (sender, mut items) = mpsc::unbounded_channel();
    let (end, written) = oneshot::channel();
    let mut write = move || {
        while let Some(item) = items.blocking_recv() {
            match item {
                Item::Events(time, events, _permit) => output.batch(&events, time)?,
                Item::Notice(text) => output.notice(&text)?,
                Item::Tick(waiting) => {
                    waiting.store(false, Ordering::Relaxed);
                    output.tick(Instant::now())?;
                }
            }
        }
        Ok(())
    };
    let body = move || drop(end.send(write()));
    std::thread::Builder::new().name("writer".to_owned()).spawn(body)?;
    Ok((sender, written))
}

/// Passes the run's events to the writer until both have ended. Returns the exit code.
async fn show(
    mut run: Run,
    items: mpsc::UnboundedSender<Item>,
    written: oneshot::Receiver<io::Result<()>>,
    is_live: bool,
    mut verbose: Option<Verbose>,
    journal: &Journal,
) -> u8 {
    let permits = Arc::new(Semaphore::new(WAITING_BATCHES));
    let mut events = Vec::new();
    let (mut ticks, tick_waits) = (tokio::time::interval(TICK), Arc::new(AtomicBool::new(false)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut written = pin!(written);
    let mut write_result = None;
    let mut code = exit::FAILURE;
    // If the writer has ended, items are dropped.
    let notify = |text: Printable| _ = items.send(Item::Notice(text));
    verbose.iter().map(Verbose::first).for_each(notify);
    loop {
        tokio::select! {
            text = next_notice(&mut verbose) => notify(text),
            count = run.next_batch(&mut events) => {
                if count == 0 {
                    break;
                }
                let now = Instant::now();
                // The notices, each with the number of events before it.
                let mut notices = Vec::new();
                for (count, stamped) in (1..).zip(&events) {
                    if let Event::Done(done) = &stamped.event {
                        code = exit::of_result(&done.result);
                        journal.add(&done.result);
                    }
                    let notice = verbose.as_mut().and_then(|verbose| verbose.event(&stamped.event, now));
                    notices.extend(notice.map(|notice| (count, notice)));
                }
                if let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
                    pass_on(std::mem::take(&mut events), notices, &mut verbose, now, permit, &items);
                }
                verbose.iter_mut().flat_map(Verbose::rest).for_each(notify);
            }
            // At most one tick waits for the writer.
            _ = ticks.tick(), if is_live => {
                if !tick_waits.swap(true, Ordering::Relaxed) {
                    let _ = items.send(Item::Tick(Arc::clone(&tick_waits)));
                }
            }
            // The output can no longer be written, so the agent is stopped.
            end = &mut written, if write_result.is_none() => {
                write_result = Some(end);
                run.control().interrupt();
            }
        }
    }
    drop(items);
    let write_result = match write_result {
        Some(end) => end,
        None => written.await,
    };
    match write_result {
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

/// Passes a batch to the writer, with each notice after the event that it belongs to.
fn pass_on(
    mut events: Vec<StampedEvent>,
    notices: Vec<(usize, Printable)>,
    verbose: &mut Option<Verbose>,
    now: Instant,
    permit: OwnedSemaphorePermit,
    items: &mpsc::UnboundedSender<Item>,
) {
    let permit = Arc::new(permit);
    let mut passed = 0;
    for (count, notice) in notices {
        let rest = events.split_off((count - passed).min(events.len()));
        let part = std::mem::replace(&mut events, rest);
        passed = count;
        let _ = items.send(Item::Events(now, part, Arc::clone(&permit)));
        for text in verbose.iter_mut().flat_map(Verbose::rest).chain([notice]) {
            let _ = items.send(Item::Notice(text));
        }
    }
    if !events.is_empty() {
        let _ = items.send(Item::Events(now, events, permit));
    }
}

/// Waits for the next notice of `--verbose`. Without the option it waits forever. Cancel-safe.
async fn next_notice(verbose: &mut Option<Verbose>) -> Printable {
    match verbose {
        Some(verbose) => verbose.next().await,
        None => std::future::pending().await,
    }
}

/// Queues a notice on the effect of Ctrl-C behind the waiting events.
fn notify(notices: &mpsc::WeakUnboundedSender<Item>, text: &'static str) {
    // The terminal has echoed `^C` on the current line.
    let start = if io::stderr().is_terminal() { "\r" } else { "" };
    if let Some(notices) = notices.upgrade() {
        let _ = notices.send(Item::Notice(printable!("{}{}", start, text)));
    }
}
