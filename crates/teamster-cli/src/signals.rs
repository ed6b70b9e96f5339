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
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        let catch = |kind: SignalKind| {
            let mask = 1_u64.checked_shl(kind.as_raw_value().unsigned_abs() - 1).unwrap_or(0);
            if ignored & mask == 0 { signal(kind).map(Some) } else { Ok(None) }
        };
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hangup: catch(SignalKind::hangup())?,
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

/// The mask of ignored signals in `/proc/PID/status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status_page() {
        assert_eq!(ignored("Name:\tteamster\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"), 0x1001);
        assert_eq!(ignored("nothing of the kind"), 0);
    }
}
