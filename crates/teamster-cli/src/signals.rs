//! The signals that ask this command to end.
//!
//! A signal that was ignored when the command started stays ignored: `nohup` keeps a run alive when its terminal goes,
//! and a shell script keeps Ctrl-C from its background jobs, in just this way.

use std::future::pending;
use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// A person pressed Ctrl-C.
    Interrupt,
    /// The system or another program asks: SIGTERM, or SIGHUP.
    Terminate,
}

/// Signals from now on.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Option<Stream>,
    terminate: Option<Stream>,
    hangup: Option<Stream>,
}

impl Signals {
    /// Begins to catch them.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn catch() -> io::Result<Self> {
        let catch = |one: teamster::Signal, kind| if one.is_ignored() { Ok(None) } else { signal(kind).map(Some) };
        Ok(Self {
            interrupt: catch(teamster::Signal::Interrupt, SignalKind::interrupt())?,
            terminate: catch(teamster::Signal::Terminate, SignalKind::terminate())?,
            hangup: catch(teamster::Signal::Hangup, SignalKind::hangup())?,
        })
    }

    /// The next one.
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
