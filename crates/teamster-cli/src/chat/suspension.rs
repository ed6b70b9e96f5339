//! Suspends the command with Ctrl-Z and SIGTSTP, and notices when the window changes its size.

use std::io;

use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::{Chat, End, Happening};
use crate::signals;

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
    pub(super) async fn next(&mut self) -> Happening {
        tokio::select! {
            _ = self.suspend.recv() => Happening::Suspend,
            _ = self.resized.recv() => Happening::Resized,
            _ = self.quit.recv() => Happening::Signal(signals::Signal::Terminate),
        }
    }
}

impl Chat<'_> {
    /// Suspends all commands of the shell's job. This command handles the signal too.
    pub(super) fn request_suspension(&mut self) {
        if !super::terminal::has_job_control() {
            self.notify("no shell can continue this command, so it is not suspended");
        } else if kill_current_process_group(Signal::TSTP).is_err() {
            self.notify("the command could not be suspended");
        }
    }

    /// Restores the terminal, and stops this process until the shell continues it. The agent works on.
    pub(super) async fn suspend(&mut self) -> Result<(), End> {
        self.leave_terminal().await?;
        _ = kill_process(getpid(), Signal::STOP);
        self.return_to_terminal()
    }
}
