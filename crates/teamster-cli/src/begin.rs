//! How a command begins, and what it says of signals.

use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::time::Instant;

use crate::exit;
use crate::printable::Printable;
use crate::render::write_error;

/// How long the last lines may take to be read once a run was ended at once.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(3);

pub(crate) const ASKED_TO_STOP: &str = "asked the agent to stop; Ctrl-C again ends it at once";
pub(crate) const ENDING: &str = "ending the agent at once";

/// Carries out a command and tells its exit code.
pub(crate) fn carry_out(command: impl Future<Output = io::Result<u8>>) -> u8 {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match tokio.and_then(|tokio| tokio.block_on(command)) {
        Ok(code) => code,
        Err(error) => {
            write_error(&mut anstream::stderr(), &Printable::error(&error), None);
            exit::FAILURE
        }
    }
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
