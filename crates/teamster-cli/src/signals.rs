//! The signals that stop this command.
//!
//! A signal that was ignored when the command started stays ignored. `nohup` relies on this to keep a run alive after
//! its terminal is closed, and shell scripts rely on it to protect their background jobs from Ctrl-C.

use std::future::pending;
use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT: a person pressed Ctrl-C.
    Interrupt,
    /// SIGTERM or SIGHUP: the system or another program requests the end.
    Terminate,
}

/// The signals that were received since [`Signals::catch`].
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Option<Stream>,
    terminate: Option<Stream>,
    hangup: Option<Stream>,
}

impl Signals {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// Returns an error if the system rejects a handler.
    pub(crate) fn catch() -> io::Result<Self> {
        let catch =
            |one: teamster::supervision::Signal, kind| if one.is_ignored() { Ok(None) } else { signal(kind).map(Some) };
        Ok(Self {
            interrupt: catch(teamster::supervision::Signal::Interrupt, SignalKind::interrupt())?,
            terminate: catch(teamster::supervision::Signal::Terminate, SignalKind::terminate())?,
            hangup: catch(teamster::supervision::Signal::Hangup, SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            () = received(&mut self.interrupt) => Signal::Interrupt,
            () = received(&mut self.terminate) => Signal::Terminate,
            () = received(&mut self.hangup) => Signal::Terminate,
        }
    }
}

async fn received(stream: &mut Option<Stream>) {
    let came = match stream {
        Some(stream) => stream.recv().await,
        None => None,
    };
    if came.is_none() {
        pending::<()>().await;
    }
}
