//! Suspends the command with Ctrl-Z and SIGTSTP.

use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};

use super::backend::Backend;
use super::state::{Chat, End};
use crate::terminal::has_job_control;

impl<B: Backend> Chat<'_, B> {
    /// Suspends all commands of the shell's job. This command handles the signal too.
    pub(super) fn request_suspension(&mut self) {
        if !has_job_control() {
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
