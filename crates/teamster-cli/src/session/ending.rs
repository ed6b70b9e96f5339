//! The end of a session: it is closed, and its last lines are written.

use std::io;

use teamster::Session;
use tokio::sync::oneshot;

use crate::exit;
use crate::printable::{Printable, printable};
use crate::render::write_error;
use crate::signals::Signals;

/// Closes the session; a signal meanwhile kills its processes.
pub(super) async fn close(session: Session, signals: &mut Signals) {
    tokio::select! {
        () = session.close() => {}
        _ = signals.next() => {}
    }
}

/// Waits until the last lines are written; a signal stops the wait.
pub(super) async fn wait_until_written(
    written: oneshot::Receiver<io::Result<()>>,
    signals: &mut Signals,
    code: u8,
) -> u8 {
    tokio::select! {
        end = written => exit_code_after_writing(end, code),
        _ = signals.next() => exit::INTERRUPTED,
    }
}

/// Returns the exit code: `code`, unless a line could not be written.
pub(super) fn exit_code_after_writing(end: Result<io::Result<()>, oneshot::error::RecvError>, code: u8) -> u8 {
    match end {
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
            write_error(
                &mut anstream::stderr(),
                &printable!("cannot write to standard output: {}", Printable::error(&error)),
                None,
            );
            exit::FAILURE
        }
        Ok(Err(_)) => exit::NO_READER,
        _ => code,
    }
}
