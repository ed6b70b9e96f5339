//! A terminal with a screen, for tests: runs a command on a pseudo-terminal, sends keys, and shows its screen as text.

#![expect(clippy::panic, clippy::unwrap_used, reason = "each failure here is that of a test")]

mod replaced;
mod style;

use std::fmt;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rexpect::process::PtyProcess;
pub use rexpect::process::Signal;
use rexpect::process::WaitStatus;
use rustix::termios::{LocalModes, Winsize};
pub use vt100;

pub use replaced::{replaced, steady};
pub use style::{Span, rows, spans, text_with_styles};

/// The columns and rows of a terminal.
pub type Size = (u16, u16);

/// The smallest size that is supported, and a large one.
pub const SIZES: [Size; 2] = [(80, 24), (120, 40)];

/// The default time limit of a wait, long enough for a busy machine.
pub const BOUND: Duration = Duration::from_secs(20);

/// The shell that starts the command and waits for it. When the first process of a terminal ends, Linux discards the output
/// that has not been read yet (`pty_flush_buffer`), so that process must not be the command. It reports the exit code in an
/// operating system command, which no terminal shows.
const SHELL: &str = "set -m; \"$@\"; printf '\\033]exit;%d\\007' $?; exec /bin/sleep 100";

/// What precedes the exit code in the output of the shell.
const EXIT: &[u8] = b"\x1b]exit;";

/// A command that runs on a terminal. Its methods panic if a system call fails or a condition is not met in time, so that
/// the test fails.
pub struct Terminal {
    process: PtyProcess,
    input: std::fs::File,
    emulator: Arc<Mutex<Emulator>>,
    /// It ends with the exit code of the command.
    reader: Option<JoinHandle<Option<i32>>>,
    /// The time limit of a wait.
    limit: Duration,
}

struct Emulator {
    parser: vt100::Parser,
    /// All output of the command.
    sent: Vec<u8>,
}

impl Emulator {
    /// Takes output. Returns the exit code if the command has ended.
    fn process(&mut self, bytes: &[u8]) -> Option<i32> {
        self.parser.process(bytes);
        self.sent.extend_from_slice(bytes);
        let at = self.sent.windows(EXIT.len()).rposition(|window| window == EXIT)?;
        let code = self.sent.get(at + EXIT.len()..)?.strip_suffix(b"\x07")?;
        let code = String::from_utf8_lossy(code).parse().ok()?;
        self.sent.truncate(at);
        Some(code)
    }

    /// Whether the command has started a synchronized update that is not complete. A terminal shows the previous screen then.
    fn is_updating(&self) -> bool {
        let last = |sequence: &[u8]| self.sent.windows(sequence.len()).rposition(|window| window == sequence);
        last(b"\x1b[?2026h") > last(b"\x1b[?2026l")
    }
}

impl Terminal {
    /// Starts a command on a terminal of this size, from a shell with job control.
    pub fn start(command: &Command, size: Size) -> Self {
        Self::start_from(SHELL, command, size)
    }

    /// Starts a command as the first process of a terminal: no shell can continue it.
    pub fn start_without_shell(command: &Command, size: Size) -> Self {
        Self::start_from("exec \"$@\"", command, size)
    }

    fn start_from(script: &str, command: &Command, size: Size) -> Self {
        let (columns, rows) = size;
        // The size is set before the command starts, so it never sees another one.
        let mut sized = Command::new("/bin/sh");
        sized.arg("-c").arg(format!("PATH=/usr/bin:/bin stty rows {rows} cols {columns}; {script}")).arg("sh");
        sized.arg(command.get_program()).args(command.get_args()).env_clear();
        let with_value = |(name, value): (_, Option<_>)| value.map(|value| (name, value));
        sized.envs(command.get_envs().filter_map(with_value)).stdin(Stdio::inherit());
        if let Some(directory) = command.get_current_dir() {
            sized.current_dir(directory);
        }
        let process = PtyProcess::new(sized).unwrap();
        let number = |number| NonZeroU16::new(number).unwrap();
        let parser = vt100::Parser::new(number(rows), number(columns), 10_000);
        let emulator = Arc::new(Mutex::new(Emulator { parser, sent: Vec::new() }));
        let (mut output, shown) = (process.get_file_handle().unwrap(), Arc::clone(&emulator));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                // When the shell is killed, Linux reports an error.
                let count = output.read(&mut buffer).ok().filter(|count| *count > 0)?;
                let code = shown.lock().unwrap().process(buffer.get(..count)?);
                if code.is_some() {
                    return code;
                }
            }
        });
        let input = process.get_file_handle().unwrap();
        Self { process, input, emulator, reader: Some(reader), limit: BOUND }
    }

    /// Sets the time limit of each wait. The default is [`BOUND`].
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sends keys.
    pub fn press(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, (columns, rows): Size) {
        let number = |number| NonZeroU16::new(number).unwrap();
        self.emulator.lock().unwrap().parser.screen_mut().set_size(number(rows), number(columns));
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.input, size).unwrap();
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: Signal) {
        let signal = rustix::process::Signal::from_named_raw(signal as i32).unwrap();
        rustix::process::kill_process(self.foreground().unwrap(), signal).unwrap();
    }

    /// Returns the first process of the foreground: the command, or the shell after its end.
    fn foreground(&self) -> rustix::io::Result<rustix::process::Pid> {
        rustix::termios::tcgetpgrp(&self.input)
    }

    /// Returns whether the terminal sends single keys, without an echo.
    pub fn is_raw(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.input).unwrap().local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Returns whether the terminal sends whole lines.
    pub fn sends_lines(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.input).unwrap().local_modes;
        modes.contains(LocalModes::ICANON)
    }

    /// Returns the text on the screen.
    pub fn text(&self) -> String {
        self.screen().contents()
    }

    /// Returns all output of the command, with its control sequences.
    pub fn sent(&self) -> String {
        String::from_utf8_lossy(&self.emulator.lock().unwrap().sent).into_owned()
    }

    /// Waits until a text is on the screen.
    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("{text:?} is on the screen"), |screen| screen.contains(text));
    }

    /// Waits until a text is on the screen, where the replacements of [`snapshot`](Self::snapshot) are made.
    pub fn wait_for_steady(&self, text: &str) {
        self.wait_until(&format!("{text:?} is on the screen"), |screen| steady(screen).contains(text));
    }

    /// Waits until the text on the screen meets a condition.
    pub fn wait_until(&self, what: &str, condition: impl Fn(&str) -> bool) {
        let shown = std::cell::RefCell::new(String::new());
        let met = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until_within(self.limit, what, || {
                *shown.borrow_mut() = self.text();
                condition(&shown.borrow())
            });
        }));
        assert!(met.is_ok(), "not met: {what}\n{}", shown.borrow());
    }

    /// Waits for the end of the command. Returns its exit code.
    pub fn wait_for_exit(&mut self) -> i32 {
        until_within(self.limit, "the command ends", || self.reader.as_ref().is_none_or(JoinHandle::is_finished));
        let code = self.reader.take().unwrap().join().unwrap();
        code.unwrap_or_else(|| match self.process.kill(Signal::SIGKILL) {
            Ok(WaitStatus::Exited(_, code)) => code,
            other => panic!("{other:?}"),
        })
    }

    /// Returns what is on the screen. Waits for the end of an update.
    pub fn screen(&self) -> vt100::Screen {
        let mut screen = None;
        until("the update of the screen is complete", || {
            let emulator = self.emulator.lock().unwrap();
            // A killed command does not complete it.
            let is_complete = !emulator.is_updating() || self.reader.as_ref().is_none_or(JoinHandle::is_finished);
            screen = is_complete.then(|| emulator.parser.screen().clone());
            is_complete
        });
        screen.unwrap()
    }

    /// Returns the text on the screen for a snapshot: what differs between two runs is replaced.
    pub fn snapshot(&self) -> String {
        steady(&self.text())
    }

    /// Returns the screen with the styles of the text, for a snapshot.
    pub fn styled_snapshot(&self) -> String {
        steady(&text_with_styles(&self.screen()))
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // They may have ended.
        _ = self.foreground().and_then(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
        _ = self.process.kill(Signal::SIGKILL);
    }
}

/// Waits until a condition is met. Panics after [`BOUND`].
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    until_within(BOUND, what, condition);
}

fn until_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < limit, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
