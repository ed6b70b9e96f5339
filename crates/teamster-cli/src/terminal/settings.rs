//! The settings of the terminal: raw input for the input box, and the original settings at every exit.

use std::io;
use std::sync::OnceLock;

use nix::unistd::{Pid, getpid, getppid, getsid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// Enables and disables bracketed paste.
const ENTER: &[u8] = b"\x1b[?2004h";
const LEAVE: &[u8] = b"\x1b[?2004l\x1b[?25h";

/// The terminal on standard input. Its original settings are restored on drop, and before the message of a panic.
#[derive(Debug)]
pub(crate) struct Terminal {
    original: Termios,
    /// Whether single keys are read. Otherwise the terminal sends whole lines.
    is_raw: bool,
}

/// The terminal whose settings a panic restores.
static PANIC: OnceLock<(Termios, bool)> = OnceLock::new();

impl Terminal {
    /// Prepares the terminal. With `is_raw`, it sends single keys, and pastes in brackets.
    pub(crate) fn enter(is_raw: bool) -> io::Result<Self> {
        let terminal = Self { original: tcgetattr(stdin())?, is_raw };
        if PANIC.set((terminal.original.clone(), is_raw)).is_ok() {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if let Some((original, is_raw)) = PANIC.get() {
                    restore(original, *is_raw);
                }
                report(panic);
            }));
        }
        terminal.apply();
        Ok(terminal)
    }

    /// Applies the settings of the chat.
    pub(crate) fn apply(&self) {
        if !self.is_raw {
            return;
        }
        let mut settings = self.original.clone();
        settings.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        // Output is processed as before: a line end also returns to the first column.
        settings.input_modes.remove(
            InputModes::ICRNL
                | InputModes::INLCR
                | InputModes::IGNCR
                | InputModes::IXON
                | InputModes::BRKINT
                | InputModes::ISTRIP,
        );
        settings.special_codes[SpecialCodeIndex::VMIN] = 1;
        settings.special_codes[SpecialCodeIndex::VTIME] = 0;
        // This fails only if the terminal is closed.
        _ = tcsetattr(stdin(), OptionalActions::Now, &settings);
        write_if_possible(ENTER);
    }

    /// Restores the original settings.
    pub(crate) fn restore(&self) {
        restore(&self.original, self.is_raw);
    }

    /// Disables the echo, or restores it, of a terminal that sends whole lines. While the agent works, typed characters would
    /// appear inside its output.
    pub(crate) fn set_echo(&self, is_on: bool) {
        if self.is_raw {
            return;
        }
        let mut settings = self.original.clone();
        if !is_on {
            settings.local_modes.remove(LocalModes::ECHO);
        }
        _ = tcsetattr(stdin(), OptionalActions::Now, &settings);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restore();
    }
}

fn restore(original: &Termios, is_raw: bool) {
    _ = tcsetattr(stdin(), OptionalActions::Now, original);
    if is_raw {
        write_if_possible(LEAVE);
    }
}

/// Writes to the terminal, unless it is blocked: a slow reader must not delay the exit.
fn write_if_possible(bytes: &[u8]) {
    let stdout = stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::OUT)];
    if poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0) {
        _ = rustix::io::write(stdout, bytes);
    }
}

/// Whether a shell can continue this command after it was suspended: its parent is in the same session.
pub(crate) fn has_job_control() -> bool {
    // The id of a process or of a session's leader outside this PID namespace is 0.
    let known = |id: Pid| (id.as_raw() > 0).then_some(id);
    let session = |process: Pid| getsid(Some(process)).ok().and_then(known);
    let own = session(getpid());
    own.is_some() && own != Some(getpid()) && own == known(getppid()).and_then(session)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Command;

    use rexpect::process::PtyProcess;

    use super::*;

    /// The variable with which the test starts itself on a terminal.
    const CHILD: &str = "TEAMSTER_TEST_PANIC";

    #[test]
    fn a_panic_restores_the_terminal_before_its_message() {
        if std::env::var_os(CHILD).is_some() {
            let terminal = Terminal::enter(true).unwrap();
            assert!(!tcgetattr(stdin()).unwrap().local_modes.contains(LocalModes::ICANON));
            panic!("a fault in the chat with {terminal:?}");
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = "terminal::settings::tests::a_panic_restores_the_terminal_before_its_message";
        command.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
        let process = PtyProcess::new(command).unwrap();
        let (mut sent, mut terminal) = (Vec::new(), process.get_file_handle().unwrap());
        let mut buffer = [0; 4096];
        // At the end of the command, Linux reports an error.
        while let Ok(count @ 1..) = terminal.read(&mut buffer) {
            sent.extend_from_slice(&buffer[..count]);
        }
        let sent = String::from_utf8_lossy(&sent);
        let at = |text: &str| sent.find(text).unwrap_or_else(|| panic!("{text:?} is not in {sent}"));
        assert!(at("\u{1b}[?2004h") < at("\u{1b}[?2004l") && at("\u{1b}[?25h") < at("a fault in the chat"), "{sent}");
        let modes = tcgetattr(&terminal).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ISIG));
    }
}
