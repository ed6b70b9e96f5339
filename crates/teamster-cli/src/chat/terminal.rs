//! The terminal's own settings, and what is typed while the agent works.

use std::io::{self, PipeReader, PipeWriter};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// The terminal as it was found, and will be left.
#[derive(Debug)]
pub(super) struct Terminal {
    found: Termios,
    /// It knows no escape sequences.
    is_plain: bool,
}

impl Terminal {
    pub(super) fn of_stdin() -> io::Result<Self> {
        let is_plain = std::env::var("TERM").is_ok_and(|name| ["", "dumb", "cons25", "emacs"].contains(&name.as_str()));
        Ok(Self { found: tcgetattr(stdin())?, is_plain })
    }

    /// What ends the marks around pasted text, which the line editor asks for while it reads.
    pub(super) fn without_pasting(&self) -> &'static str {
        if self.is_plain { "" } else { "\x1b[?2004l" }
    }

    /// Does not show what is typed: it would stand in the middle of what the agent says.
    fn hush(&self) {
        let mut hushed = self.found.clone();
        hushed.local_modes.remove(LocalModes::ECHO);
        // A terminal that is gone shows nothing.
        _ = tcsetattr(stdin(), OptionalActions::Now, &hushed);
    }

    /// As it was found.
    pub(super) fn restore(&self) {
        _ = tcsetattr(stdin(), OptionalActions::Now, &self.found);
    }
}

impl Drop for Terminal {
    /// The editor may be in the middle of a line, with the terminal in its own mode.
    fn drop(&mut self) {
        self.restore();
    }
}

/// Throws away what was typed and not read.
pub(super) fn forget_typed() {
    _ = tcflush(stdin(), QueueSelector::IFlush);
}

/// Lines that are typed while the agent works. Dropped, it leaves what is not a whole line to the editor.
#[derive(Debug)]
pub(super) struct Listening<'a> {
    terminal: &'a Terminal,
    /// As many as a person types.
    lines: mpsc::UnboundedReceiver<String>,
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl<'a> Listening<'a> {
    pub(super) fn to(terminal: &'a Terminal) -> io::Result<Self> {
        let (sender, lines) = mpsc::unbounded_channel();
        let (stopped, stop) = io::pipe()?;
        let thread = std::thread::Builder::new().name("typed".to_owned()).spawn(move || listen(&stopped, &sender))?;
        terminal.hush();
        Ok(Self { terminal, lines, stop: Some(stop), thread: Some(thread) })
    }

    /// The next line. Can be dropped and called again at any time.
    pub(super) async fn next(&mut self) -> String {
        match self.lines.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// Stops, and gives what was typed last.
    pub(super) fn stop(mut self) -> Vec<String> {
        self.end();
        std::iter::from_fn(|| self.lines.try_recv().ok()).collect()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has no more to do than to see that it is over.
            _ = thread.join();
        }
        self.terminal.restore();
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads whole lines, which is what a terminal gives, until it is stopped.
fn listen(stopped: &PipeReader, lines: &mpsc::UnboundedSender<String>) {
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
        // A terminal that was hung up would give its end for ever.
        if !stop.revents().is_empty() || typed.revents() != PollFlags::IN {
            return;
        }
        match rustix::io::read(stdin, &mut buffer) {
            // Ctrl-D says nothing while the agent works.
            Err(Errno::INTR) | Ok(0) => {}
            Ok(count) => {
                let text = String::from_utf8_lossy(buffer.get(..count).unwrap_or_default()).into_owned();
                _ = lines.send(text.trim_end_matches('\n').to_owned());
            }
            Err(_) => return,
        }
    }
}
