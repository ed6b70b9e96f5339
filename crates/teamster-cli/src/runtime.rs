//! The Tokio runtime of a command, its startup errors, and the messages that it prints on signals.

use std::future::pending;
use std::io;
use std::time::Duration;

use teamster::supervision::limits::{self, Limit};
use tokio::time::Instant;

use crate::exit;
use crate::printable::Printable;
use crate::render::write_error;

/// The time that a reader has for the last lines after the agent was killed.
pub(crate) const FINAL_OUTPUT_TIMEOUT: Duration = Duration::from_secs(3);

/// The number of files that Tokio opens at its start, with a few more for the command itself. Tokio panics if the system
/// refuses one of them.
const FILES: usize = 12;

const WORKERS: usize = 2;

/// The threads of a command's Tokio runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The main thread alone. Events need no wake-up of another thread.
    Main,
    /// Workers, for commands that block a thread now and then.
    Workers,
}

pub(crate) const STOPPING_NOTICE: &str = "asked the agent to stop; press Ctrl-C again to kill it";
pub(crate) const KILLING_NOTICE: &str = "killing the agent";

/// Runs an asynchronous command to its end and returns its exit code.
pub(crate) fn run_command(threads: Threads, command: impl Future<Output = io::Result<u8>>) -> u8 {
    match build_tokio(threads).and_then(|tokio| tokio.block_on(command)) {
        Ok(code) => code,
        Err(error) => report_failure(&error),
    }
}

/// Builds the Tokio runtime. Tokio panics if the system refuses its threads or some of its files, so both are checked
/// first.
///
/// # Errors
/// Returns an error if a limit of the system is reached.
pub(crate) fn build_tokio(threads: Threads) -> io::Result<tokio::runtime::Runtime> {
    limits::can_open_files(FILES)?;
    limits::can_start_threads(WORKERS)?;
    let mut builder = match threads {
        Threads::Main => tokio::runtime::Builder::new_current_thread(),
        Threads::Workers => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.worker_threads(WORKERS).enable_all().build()
}

/// Prints a system error, and the limit that caused it if there is one. Returns the exit code.
pub(crate) fn report_failure(error: &io::Error) -> u8 {
    let message = match Limit::behind(error) {
        Some(limit) => Printable::message(&format!("{limit} ({error})")),
        None => Printable::error(error),
    };
    write_error(&mut anstream::stderr(), &message, None);
    exit::FAILURE
}

/// Prints why nothing was started. Returns the exit code.
#[expect(clippy::needless_pass_by_value, reason = "the hint is made for this call")]
pub(crate) fn report_usage_error(message: &Printable, hint: Option<Printable>) -> u8 {
    write_error(&mut anstream::stderr(), message, hint.as_ref());
    exit::USAGE
}

/// Waits until the time; without a time, forever.
pub(crate) async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => pending().await,
    }
}
