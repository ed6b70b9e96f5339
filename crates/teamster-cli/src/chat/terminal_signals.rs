//! The signals that concern the terminal of a chat.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A signal that concerns the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalSignal {
    /// SIGTSTP: the command is suspended.
    Suspend,
    /// SIGWINCH: the window has a new size.
    Resized,
    /// SIGQUIT.
    Quit,
}

/// The signals that concern the terminal.
#[derive(Debug)]
pub(super) struct TerminalSignals {
    suspend: Stream,
    resized: Stream,
    quit: Stream,
}

impl TerminalSignals {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// Returns an error if the system rejects a handler.
    pub(super) fn catch() -> io::Result<Self> {
        let suspend = signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
        Ok(Self { suspend, resized: signal(SignalKind::window_change())?, quit: signal(SignalKind::quit())? })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(super) async fn next(&mut self) -> TerminalSignal {
        tokio::select! {
            _ = self.suspend.recv() => TerminalSignal::Suspend,
            _ = self.resized.recv() => TerminalSignal::Resized,
            _ = self.quit.recv() => TerminalSignal::Quit,
        }
    }
}
