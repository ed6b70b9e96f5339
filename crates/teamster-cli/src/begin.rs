//! How a command begins, and what it says of signals.

use std::future::pending;
use std::io;
use std::time::Duration;

use teamster::limits::{self, Limit};
use tokio::time::Instant;

use crate::exit;
use crate::printable::Printable;
use crate::render::write_error;

/// How long the last lines may take to be read once a run was ended at once.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(3);

/// How many files Tokio opens at its start: it panics if it gets some and not all. A few more are for the command itself.
const FILES: usize = 12;

const WORKERS: usize = 2;

pub(crate) const ASKED_TO_STOP: &str = "asked the agent to stop; Ctrl-C again ends it at once";
pub(crate) const ENDING: &str = "ending the agent at once";

/// Carries out a command and tells its exit code.
pub(crate) fn carry_out(command: impl Future<Output = io::Result<u8>>) -> u8 {
    match tokio().and_then(|tokio| tokio.block_on(command)) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// What asynchronous code runs on. Tokio panics where the system refuses its threads or some of its files, so these are tried
/// before.
///
/// # Errors
/// When the system has no room for them.
pub(crate) fn tokio() -> io::Result<tokio::runtime::Runtime> {
    limits::can_open_files(FILES)?;
    limits::can_start_threads(WORKERS)?;
    tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()
}

/// Says what the system refused, and which limit is behind it.
pub(crate) fn fail(error: &io::Error) -> u8 {
    let message = match Limit::behind(error) {
        Some(limit) => Printable::message(&format!("{limit} ({error})")),
        None => Printable::error(error),
    };
    write_error(&mut anstream::stderr(), &message, None);
    exit::FAILURE
}

/// Says why nothing was started.
pub(crate) fn refuse(message: &Printable, hint: Option<&'static str>) -> u8 {
    write_error(&mut anstream::stderr(), message, hint);
    exit::USAGE
}

/// Waits until then; without a time, for ever.
pub(crate) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => pending().await,
    }
}
