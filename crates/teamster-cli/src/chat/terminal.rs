//! The settings of the terminal, and the lines that are typed while the agent works.

use std::io::{self, PipeReader, PipeWriter};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// The terminal on standard input. Its original settings are restored on drop.
#[derive(Debug)]
pub(super) struct Terminal {
    original: Termios,
    /// Whether the terminal supports no escape sequences.
    is_plain: bool,
}

impl Terminal {
    pub(super) fn of_stdin() -> io::Result<Self> {
        let is_plain = std::env::var("TERM").is_ok_and(|name| ["", "dumb", "cons25", "emacs"].contains(&name.as_str()));
        Ok(Self { original: tcgetattr(stdin())?, is_plain })
    }

    /// Returns the sequence that disables bracketed paste, which the line editor enables while it reads.
    pub(super) fn disable_bracketed_paste(&self) -> &'static str {
        if self.is_plain { "" } else { "\x1b[?2004l" }
    }

    /// Disables the echo, since typed characters would appear inside the agent's output.
    fn disable_echo(&self) {
        let mut settings = self.original.clone();
        settings.local_modes.remove(LocalModes::ECHO);
        // This fails only if the terminal is closed.
        _ = tcsetattr(stdin(), OptionalActions::Now, &settings);
    }

    /// Restores the original settings.
    pub(super) fn restore(&self) {
        _ = tcsetattr(stdin(), OptionalActions::Now, &self.original);
    }
}

impl Drop for Terminal {
    /// Restores the settings, since the editor may be reading a line in raw mode.
    fn drop(&mut self) {
        self.restore();
    }
}

/// Discards typed characters that were not read.
pub(super) fn discard_input() {
    _ = tcflush(stdin(), QueueSelector::IFlush);
}

/// Reads the lines that are typed while the agent works. An incomplete line stays in the terminal for the editor.
#[derive(Debug)]
pub(super) struct LineReader<'a> {
    terminal: &'a Terminal,
    /// Unbounded: a person types few lines.
    lines: mpsc::UnboundedReceiver<String>,
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl<'a> LineReader<'a> {
    pub(super) fn start(terminal: &'a Terminal) -> io::Result<Self> {
        let (sender, lines) = mpsc::unbounded_channel();
        let (stopped, stop) = io::pipe()?;
        let thread =
            std::thread::Builder::new().name("typed".to_owned()).spawn(move || read_lines(&stopped, &sender))?;
        terminal.disable_echo();
        Ok(Self { terminal, lines, stop: Some(stop), thread: Some(thread) })
    }

    /// Waits for the next line. Cancel-safe.
    pub(super) async fn next(&mut self) -> String {
        match self.lines.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// Stops the reader and returns the lines that were not taken yet.
    pub(super) fn stop(mut self) -> Vec<String> {
        self.end();
        std::iter::from_fn(|| self.lines.try_recv().ok()).collect()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The closed pipe ends the thread immediately.
            _ = thread.join();
        }
        self.terminal.restore();
    }
}

impl Drop for LineReader<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads lines until the pipe is closed. A terminal in canonical mode returns complete lines.
fn read_lines(stopped: &PipeReader, lines: &mpsc::UnboundedSender<String>) {
    let stdin = stdin();
    let mut buffer = vec![0; 4096];
    loop {
        let mut watched = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut watched, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        let [typed, stop] = watched;
        // A closed terminal would return the end of file forever.
        if !stop.revents().is_empty() || typed.revents() != PollFlags::IN {
            return;
        }
        match rustix::io::read(stdin, &mut buffer) {
            // Ctrl-D is ignored while the agent works.
            Err(Errno::INTR) | Ok(0) => {}
            Ok(count) => {
                let text = String::from_utf8_lossy(buffer.get(..count).unwrap_or_default()).into_owned();
                _ = lines.send(text.trim_end_matches('\n').to_owned());
            }
            Err(_) => return,
        }
    }
}
