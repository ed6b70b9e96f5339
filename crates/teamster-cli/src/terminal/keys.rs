//! Reads keys and lines from the terminal on a separate thread.
//!
//! Invariants: every byte that was read becomes a key, a paste or a line; input that was typed before a
//! [barrier](KeyReader::barrier) was requested is returned before it.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use termina::event::{KeyEvent, KeyEventKind};
use termina::{Event, Parser};
use tokio::sync::mpsc;

/// The time after which an escape character is the key Esc. Within it, a slow connection can send the rest of a sequence.
const ESCAPE_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The bytes of the control pipe.
const BARRIER: u8 = b'b';

/// What was typed.
#[derive(Debug)]
pub(crate) enum TerminalInput {
    Key(KeyEvent),
    Paste(String),
    /// A line of a terminal that sends whole lines. An incomplete one is a paste.
    Line(String),
    /// Ctrl-D on a terminal that sends whole lines.
    EndOfInput,
    /// Everything before was typed before the barrier was requested.
    Barrier,
    /// The terminal is closed.
    Closed,
}

/// The handle of the thread.
#[derive(Debug)]
pub(crate) struct KeyReader {
    /// Unbounded: a person types little, and a paste has its size anyway.
    input: mpsc::UnboundedReceiver<(Instant, TerminalInput)>,
    control: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl KeyReader {
    /// Starts the thread. Without `is_raw`, the terminal sends whole lines.
    pub(crate) fn start(is_raw: bool) -> io::Result<Self> {
        let (sender, input) = mpsc::unbounded_channel();
        let (controlled, control) = io::pipe()?;
        let decoder = if is_raw { Decoder::Keys(Parser::default()) } else { Decoder::Lines(Vec::new()) };
        let reader = Reader { decoder, sender, may_be_incomplete: false };
        let thread = std::thread::Builder::new().name("keys".to_owned()).spawn(move || reader.run(&controlled))?;
        Ok(Self { input, control: Some(control), thread: Some(thread) })
    }

    /// Waits for the next input. Cancel-safe.
    pub(crate) async fn next(&mut self) -> (Instant, TerminalInput) {
        self.input.recv().await.unwrap_or_else(|| (Instant::now(), TerminalInput::Closed))
    }

    /// Waits for the next input, outside of the Tokio runtime.
    pub(crate) fn blocking_next(&mut self) -> TerminalInput {
        self.input.blocking_recv().map_or(TerminalInput::Closed, |(_, input)| input)
    }

    /// Requests a [`TerminalInput::Barrier`] after everything that was typed until now.
    pub(crate) fn barrier(&mut self) {
        // The pipe is closed only if the thread has ended, which `next` reports.
        _ = self.control.as_mut().map(|control| control.write_all(&[BARRIER]));
    }

    /// Stops the thread, and returns what it has read.
    pub(crate) fn stop(mut self) -> Vec<(Instant, TerminalInput)> {
        self.end();
        std::iter::from_fn(|| self.input.try_recv().ok()).collect()
    }

    fn end(&mut self) {
        drop(self.control.take());
        if let Some(thread) = self.thread.take() {
            // The closed pipe ends the thread at once.
            _ = thread.join();
        }
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        self.end();
    }
}

struct Reader {
    decoder: Decoder,
    sender: mpsc::UnboundedSender<(Instant, TerminalInput)>,
    /// Whether the parser may hold an incomplete sequence.
    may_be_incomplete: bool,
}

enum Decoder {
    Keys(Parser),
    /// An incomplete line.
    Lines(Vec<u8>),
}

impl Reader {
    /// Reads until the pipe or the terminal is closed.
    fn run(mut self, control: &PipeReader) {
        let stdin = stdin();
        loop {
            let mut watched = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
            let timeout = self.may_be_incomplete.then_some(&ESCAPE_TIMEOUT);
            match poll(&mut watched, timeout) {
                Err(Errno::INTR) => continue,
                Err(_) => break,
                Ok(0) => {
                    self.end_sequence();
                    continue;
                }
                Ok(_) => {}
            }
            let [typed, controlled] = watched;
            let (has_input, is_controlled) = (!typed.revents().is_empty(), !controlled.revents().is_empty());
            if is_controlled {
                let mut byte = [0];
                if !matches!(rustix::io::read(control, &mut byte), Ok(1)) {
                    return;
                }
                while is_readable() && self.read() {}
                self.read_incomplete_line();
                self.send(TerminalInput::Barrier);
            } else if has_input && !self.read() {
                break;
            }
        }
        self.send(TerminalInput::Closed);
    }

    /// Reads once. Returns false if the terminal is closed.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let count = match rustix::io::read(stdin(), &mut buffer) {
            Err(Errno::INTR | Errno::AGAIN) => return true,
            Err(_) => return false,
            Ok(count) => count,
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        match &mut self.decoder {
            Decoder::Keys(_) if bytes.is_empty() => return false,
            Decoder::Keys(parser) => {
                parser.parse(bytes, true);
                self.may_be_incomplete = true;
                self.send_keys();
            }
            Decoder::Lines(_) if bytes.is_empty() => {
                self.send(TerminalInput::EndOfInput);
                // A closed terminal would return the end of input forever.
                return !is_closed();
            }
            Decoder::Lines(line) => {
                line.extend_from_slice(bytes);
                if line.ends_with(b"\n") {
                    line.pop();
                    let text = String::from_utf8_lossy(line).into_owned();
                    line.clear();
                    self.send(TerminalInput::Line(text));
                }
            }
        }
        true
    }

    /// Reads what was typed since the last line end. Otherwise it would become a part of the next line.
    fn read_incomplete_line(&mut self) {
        let Decoder::Lines(line) = &mut self.decoder else { return };
        let Ok(settings) = tcgetattr(stdin()) else { return };
        let mut single_keys = settings.clone();
        single_keys.local_modes.remove(LocalModes::ICANON);
        single_keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        single_keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        if tcsetattr(stdin(), OptionalActions::Now, &single_keys).is_err() {
            return;
        }
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = rustix::io::retry_on_intr(|| rustix::io::read(stdin(), &mut buffer)) {
            line.extend_from_slice(buffer.get(..count).unwrap_or_default());
        }
        // This fails only if the terminal is closed.
        _ = tcsetattr(stdin(), OptionalActions::Now, &settings);
        if !line.is_empty() {
            let text = String::from_utf8_lossy(line).into_owned();
            line.clear();
            self.send(TerminalInput::Paste(text));
        }
    }

    /// Treats an incomplete sequence as complete: nothing follows it.
    fn end_sequence(&mut self) {
        self.may_be_incomplete = false;
        if let Decoder::Keys(parser) = &mut self.decoder {
            parser.parse(&[], false);
        }
        self.send_keys();
    }

    fn send_keys(&mut self) {
        let Decoder::Keys(parser) = &mut self.decoder else { return };
        let events: Vec<Event> = std::iter::from_fn(|| parser.pop()).collect();
        for event in events {
            match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => self.send(TerminalInput::Key(key)),
                Event::Paste(text) => self.send(TerminalInput::Paste(text)),
                // Reports of the terminal were not typed.
                _ => {}
            }
        }
    }

    fn send(&self, input: TerminalInput) {
        // The receiver is dropped at the end.
        _ = self.sender.send((Instant::now(), input));
    }
}

fn is_readable() -> bool {
    poll_stdin().contains(PollFlags::IN)
}

fn is_closed() -> bool {
    poll_stdin().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

fn poll_stdin() -> PollFlags {
    let stdin = stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut watched, Some(&NO_WAIT)) {
        Ok(_) => {
            let [polled] = watched;
            polled.revents()
        }
        Err(_) => PollFlags::empty(),
    }
}
