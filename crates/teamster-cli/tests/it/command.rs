//! The command under test, and the CLI that it drives.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The longest that a condition may take to come true, on a machine that is busy with other things.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// Takes the opening of a session and the prompt, as Claude Code does.
pub(crate) const LISTEN: &str = "read -r opening; read -r prompt;";
/// Prints the recorded run, and exits when its input ends.
pub(crate) const ANSWER: &str = "read -r opening; read -r prompt; cat \"$CAPTURE\"; cat >/dev/null";

/// `teamster run` with this script as the agent's CLI and nothing else in its environment.
pub(crate) fn teamster(script: &str, args: &[&str]) -> Command {
    command("run", script, args)
}

/// The same with another command.
pub(crate) fn command(name: &str, script: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("FAKE_CLI", script);
    command.env("BACKEND_CLI_PATH", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-cli.sh"));
    command.env("CAPTURE", capture("text"));
    command.arg(name).args(args).stdin(Stdio::null());
    command
}

/// What a recorded run of Claude Code wrote.
pub(crate) fn capture(name: &str) -> PathBuf {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teamster-agents/tests/captures/claude");
    captures.join(name).join("stdout.ndjson")
}

/// What a terminal was sent, as text: `rexpect` takes each byte for a character.
pub(crate) fn sent(bytes: &str) -> String {
    String::from_utf8(bytes.chars().map(|byte| u8::try_from(byte).unwrap()).collect()).unwrap()
}

/// What came of a command.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a command to its end.
pub(crate) fn ended(mut command: Command) -> Ended {
    Running::start(&mut command).end()
}

/// A command that runs, read line by line.
pub(crate) struct Running {
    child: Child,
    out: Lines,
    err: Lines,
}

/// The lines of a stream, and those that a test has seen.
struct Lines {
    receiver: Receiver<String>,
    seen: String,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (Lines::of(child.stdout.take().unwrap()), Lines::of(child.stderr.take().unwrap()));
        Self { child, out, err }
    }

    /// Writes to standard input, and ends it.
    pub(crate) fn type_in(&mut self, text: &[u8]) {
        self.child.stdin.take().unwrap().write_all(text).unwrap();
    }

    /// Writes a line to standard input, which stays open.
    pub(crate) fn write_line(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Waits for the end and gives the exit code.
    pub(crate) fn wait_for_exit(&mut self) -> Option<i32> {
        wait(&mut self.child)
    }

    /// Waits for a line on standard output.
    pub(crate) fn wait_for_out(&mut self, needle: &str) {
        self.out.wait_for(needle);
    }

    /// Waits for a line on standard error.
    pub(crate) fn wait_for_err(&mut self, needle: &str) {
        self.err.wait_for(needle);
    }

    /// Waits for a line on standard output. Returns the lines so far.
    pub(crate) fn out_until(&mut self, needle: &str) -> String {
        self.out.wait_for(needle);
        self.out.seen.clone()
    }

    /// Waits for a line on standard error. Returns the lines so far.
    pub(crate) fn err_until(&mut self, needle: &str) -> String {
        self.err.wait_for(needle);
        self.err.seen.clone()
    }

    /// Waits for an event of this type on standard output.
    pub(crate) fn next_event(&mut self, kind: &str) -> serde_json::Value {
        loop {
            let event: serde_json::Value = serde_json::from_str(&self.out.next()).expect("events are JSON");
            if event["type"] == kind {
                return event;
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal_to(&self.child, signal);
    }

    pub(crate) fn end(mut self) -> Ended {
        let code = wait(&mut self.child);
        Ended { code, out: self.out.rest(), err: self.err.rest() }
    }
}

impl Drop for Running {
    /// A test that fails leaves no command that waits for it.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            _ = self.child.kill();
            _ = self.child.wait();
        }
    }
}

impl Lines {
    fn of(stream: impl std::io::Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while stream.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8(std::mem::take(&mut line)).expect("output is UTF-8");
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        Self { receiver, seen: String::new() }
    }

    fn wait_for(&mut self, needle: &str) {
        while !self.seen.contains(needle) {
            match self.receiver.recv_timeout(BOUND) {
                Ok(line) => self.seen.push_str(&line),
                Err(error) => panic!("{needle:?} never came ({error}) after:\n{}", self.seen),
            }
        }
    }

    fn next(&mut self) -> String {
        match self.receiver.recv_timeout(BOUND) {
            Ok(line) => {
                self.seen.push_str(&line);
                line
            }
            Err(error) => panic!("no line comes ({error}) after:\n{}", self.seen),
        }
    }

    fn rest(&mut self) -> String {
        loop {
            match self.receiver.recv_timeout(BOUND) {
                Ok(line) => self.seen.push_str(&line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return std::mem::take(&mut self.seen),
                Err(error) => panic!("the stream does not end ({error})"),
            }
        }
    }
}

pub(crate) fn signal_to(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Reads lines up to the first one with this text. Dropping the returned reader closes the stream.
pub(crate) fn read_until(out: ChildStdout, needle: &'static str) -> BufReader<ChildStdout> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut out = BufReader::new(out);
        let mut line = String::new();
        while out.read_line(&mut line).is_ok_and(|read| read > 0) {
            if line.contains(needle) {
                _ = sender.send(out);
                return;
            }
            line.clear();
        }
    });
    receiver.recv_timeout(BOUND).unwrap_or_else(|error| panic!("{needle:?} never came ({error})"))
}

/// Reads a stream to its end.
pub(crate) fn rest_of(stream: impl std::io::Read + Send + 'static) -> String {
    Lines::of(stream).rest()
}

/// Waits for the end and gives the exit code.
pub(crate) fn wait(child: &mut Child) -> Option<i32> {
    let mut status = None;
    until("the command ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.and_then(|status| status.code())
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < BOUND, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process with the id in this file is alive. A zombie is not.
pub(crate) fn lives(pid_file: &Path) -> bool {
    let pid = std::fs::read_to_string(pid_file).unwrap();
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}
