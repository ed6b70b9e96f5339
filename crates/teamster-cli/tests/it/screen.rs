//! The command on a terminal of a given size, with its screen as text.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rexpect::process::{PtyProcess, Signal, WaitStatus};
use rustix::termios::{LocalModes, Winsize};

use crate::command::until;

/// The columns and rows of a terminal.
pub(crate) type Size = (u16, u16);

/// The smallest size that is supported, and a large one.
pub(crate) const SIZES: [Size; 2] = [(80, 24), (120, 40)];

/// A command that runs on a terminal.
pub(crate) struct Terminal {
    process: PtyProcess,
    input: std::fs::File,
    emulator: Arc<Mutex<vt100::Parser>>,
    /// All output of the command.
    sent: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a command on a terminal of this size.
    pub(crate) fn start(command: &Command, size: Size) -> Self {
        let (columns, rows) = size;
        // The size is set before the command starts, so it never sees another one.
        let mut sized = Command::new("/bin/sh");
        sized.arg("-c").arg(format!("stty rows {rows} cols {columns}; exec \"$@\"")).arg("sh");
        sized.arg(command.get_program()).args(command.get_args()).env_clear();
        let with_value = |(name, value): (_, Option<_>)| value.map(|value| (name, value));
        sized.envs(command.get_envs().filter_map(with_value)).stdin(Stdio::inherit()).arg0("sh");
        if let Some(directory) = command.get_current_dir() {
            sized.current_dir(directory);
        }
        let process = PtyProcess::new(sized).unwrap();
        let number = |number| NonZeroU16::new(number).unwrap();
        let emulator = Arc::new(Mutex::new(vt100::Parser::new(number(rows), number(columns), 10_000)));
        let (mut output, screen) = (process.get_file_handle().unwrap(), Arc::clone(&emulator));
        let sent = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&sent);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // At the end of the command, Linux reports an error.
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                all.lock().unwrap().extend_from_slice(&buffer[..count]);
                screen.lock().unwrap().process(&buffer[..count]);
            }
        });
        let input = process.get_file_handle().unwrap();
        Self { process, input, emulator, sent, reader: Some(reader) }
    }

    /// Sends keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&self, (columns, rows): Size) {
        let number = |number| NonZeroU16::new(number).unwrap();
        self.emulator.lock().unwrap().set_size(number(rows), number(columns));
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.input, size).unwrap();
    }

    /// Sends a signal to the command.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.process.signal(signal).unwrap();
    }

    /// Returns whether the terminal sends single keys, without an echo.
    pub(crate) fn is_raw(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.input).unwrap().local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Returns the text on the screen.
    pub(crate) fn text(&self) -> String {
        self.emulator.lock().unwrap().screen().contents()
    }

    /// Returns all output of the command, with its control sequences.
    pub(crate) fn sent(&self) -> String {
        String::from_utf8_lossy(&self.sent.lock().unwrap()).into_owned()
    }

    /// Waits until a text is on the screen.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(&format!("{text:?} is on the screen"), |screen| screen.contains(text));
    }

    /// Waits until the text on the screen meets a condition.
    pub(crate) fn wait_until(&self, what: &str, condition: impl Fn(&str) -> bool) {
        let shown = std::cell::RefCell::new(String::new());
        let met = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until(what, || {
                *shown.borrow_mut() = self.text();
                condition(&shown.borrow())
            });
        }));
        assert!(met.is_ok(), "not met: {what}\n{}", shown.borrow());
    }

    /// Waits for the end of the command. Returns its exit code.
    pub(crate) fn wait_for_exit(&mut self) -> i32 {
        let mut code = None;
        until("the command ends", || {
            // The status can be read only once after the exit.
            match self.process.status() {
                Some(WaitStatus::Exited(_, found)) => code = Some(found),
                Some(WaitStatus::StillAlive) => {}
                other => panic!("{other:?}"),
            }
            code.is_some()
        });
        self.reader.take().unwrap().join().unwrap();
        code.unwrap()
    }

    /// Returns the screen for a snapshot. Times and the spinner are replaced, since they differ each time.
    pub(crate) fn snapshot(&self) -> String {
        steady(&self.text())
    }

    /// Returns the screen with the styles of the text, for a snapshot.
    pub(crate) fn styled_snapshot(&self) -> String {
        let emulator = self.emulator.lock().unwrap();
        let (rows, columns) = emulator.screen().size();
        let mut text = String::new();
        for row in 0..rows.get() {
            let mut last = String::new();
            for cell in (0..columns.get()).filter_map(|column| emulator.screen().cell(row, column)) {
                let style = if cell.has_contents() { style(cell) } else { String::new() };
                if style != last {
                    text.extend(["<", &style, ">"]);
                    last = style;
                }
                text.push_str(if cell.has_contents() || cell.is_wide_continuation() { cell.contents() } else { " " });
            }
            text.truncate(text.trim_end_matches([' ', '<', '>']).len());
            text.push('\n');
        }
        steady(text.trim_end())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.process.kill(Signal::SIGKILL);
    }
}

fn style(cell: &vt100::Cell) -> String {
    let color = match cell.fgcolor() {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => {
            Some(["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"][usize::from(index % 8)])
        }
        vt100::Color::Rgb(..) => Some("rgb"),
    };
    let flags = [
        (cell.bold(), "bold"),
        (cell.dim(), "dim"),
        (cell.italic(), "italic"),
        (cell.underline(), "underline"),
        (cell.inverse(), "inverse"),
    ];
    let flags = flags.into_iter().filter_map(|(set, name)| set.then_some(name));
    color.into_iter().chain(flags).collect::<Vec<_>>().join(" ")
}

/// Replaces what differs between two runs: the spinner and durations.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.len() - rest.trim_start_matches(is_of_number).len());
        let is_duration = !number.is_empty()
            && !steady.ends_with(|c: char| c.is_ascii_alphanumeric())
            && ["s", " s", "ms"].iter().any(|unit| {
                after.strip_prefix(unit).is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()))
            });
        steady.push_str(if is_duration { "N" } else { number });
        let mut characters = after.chars();
        if let Some(character) = characters.next() {
            let is_spinner = ('\u{2800}'..='\u{28ff}').contains(&character);
            steady.push(if is_spinner { '⠿' } else { character });
        }
        rest = characters.as_str();
    }
    steady
}

fn is_of_number(character: char) -> bool {
    character.is_ascii_digit() || character == '.'
}
