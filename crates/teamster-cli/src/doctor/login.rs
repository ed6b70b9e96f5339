//! Starts the login command of a vendor on the terminal.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use teamster_process::kill_with_descendants;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::signals::{Signal, Signals};

/// The time that the command has to exit after Ctrl-C.
const GRACE: Duration = Duration::from_secs(3);

/// The settings of the terminal, which are restored at the end: a command that is killed cannot do so.
struct SavedSettings(Option<Termios>);

impl SavedSettings {
    /// Saves the settings of standard input, if it is a terminal.
    fn of_stdin() -> Self {
        Self(tcgetattr(io::stdin()).ok())
    }
}

impl Drop for SavedSettings {
    fn drop(&mut self) {
        if let Some(settings) = &self.0 {
            // This fails only if the terminal is closed.
            _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
        }
    }
}

/// Runs the command, which uses the terminal. Returns `None` if a signal stopped it.
///
/// # Errors
/// The command cannot be started.
pub(super) async fn run(program: &Path, arguments: &[&str], signals: &mut Signals) -> io::Result<Option<ExitStatus>> {
    let _settings = SavedSettings::of_stdin();
    let mut child = Command::new(program).args(arguments).spawn()?;
    let signal = tokio::select! {
        status = child.wait() => return status.map(Some),
        signal = signals.next() => signal,
    };
    // The terminal sends Ctrl-C to the command too.
    if signal == Signal::Terminate
        && let Some(pid) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
    {
        _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let is_over = tokio::select! {
        exited = timeout(GRACE, child.wait()) => exited.is_ok(),
        _ = signals.next() => false,
    };
    if !is_over {
        kill(&mut child).await;
    }
    Ok(None)
}

/// Kills the command with all its processes.
async fn kill(child: &mut Child) {
    if let Some(pid) = child.id() {
        // The scan reads files of the system.
        _ = tokio::task::spawn_blocking(move || kill_with_descendants(pid)).await;
    }
    _ = child.kill().await;
}
