//! The host process as the test sees it: its output so far, and the test's commands to it.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use teamster::event::Event;

use crate::host::{HostReport, PART};

/// A running host.
#[derive(Debug)]
pub(crate) struct HostProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Arc<Mutex<HostOutput>>,
}

/// The output of a host.
#[derive(Debug, Default)]
pub(crate) struct HostOutput {
    pub(crate) events: Vec<Event>,
    /// The runs of an abort storm: the time of the abort in microseconds, and the events.
    pub(crate) survived: Vec<(u64, Vec<Event>)>,
    /// The time of the first `done`.
    pub(crate) done: Option<Instant>,
    /// The time at which the host reported its end.
    pub(crate) ended: Option<Instant>,
    /// Lines that are neither an event nor a report, and stderr.
    pub(crate) noise: String,
    /// Whether stdout is closed.
    pub(crate) closed: bool,
}

impl HostProcess {
    /// Starts a host. `shell` is run before it, if it is not empty.
    pub(crate) fn start(shell: &str, spec: &Path, prepare: impl FnOnce(&mut Command)) -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = if shell.is_empty() {
            Command::new(program)
        } else {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(format!("{shell}\nexec \"$0\" \"$@\"")).arg(program);
            command
        };
        command.arg(PART).arg(spec).env_clear();
        prepare(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the host")?;
        let output = Arc::new(Mutex::new(HostOutput::default()));
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else { bail!("no pipes") };
        thread::spawn({
            let output = Arc::clone(&output);
            move || {
                read_lines(stdout, |line| lock(&output).line(line));
                lock(&output).closed = true;
            }
        });
        thread::spawn({
            let output = Arc::clone(&output);
            move || read_lines(stderr, |line| lock(&output).noise(line))
        });
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, output })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the output so far.
    pub(crate) fn output(&self) -> MutexGuard<'_, HostOutput> {
        lock(&self.output)
    }

    /// Sends a command.
    pub(crate) fn send(&mut self, command: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the standard input of the host is closed")?;
        writeln!(stdin, "{command}").with_context(|| format!("cannot send {command} to the host"))
    }

    /// Sends SIGKILL, and waits for the exit.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Closes its standard input, at which the host exits.
    pub(crate) fn dismiss(&mut self) {
        self.stdin = None;
    }

    /// Returns the exit status, if it has exited.
    pub(crate) fn exit(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        _ = self.kill();
    }
}

impl HostOutput {
    /// Returns the agent's text, without that of subagents.
    pub(crate) fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Text(delta) if delta.parent_tool_id.is_none() => Some(delta.text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn line(&mut self, line: &str) {
        let now = Instant::now();
        if let Ok(event) = serde_json::from_str::<Event>(line) {
            if matches!(event, Event::Done(_)) {
                self.done.get_or_insert(now);
            }
            self.events.push(event);
            return;
        }
        match serde_json::from_str(line) {
            Ok(HostReport::Ended) => self.ended = Some(now),
            Ok(HostReport::Survived { aborted_after_us, events }) => self.survived.push((aborted_after_us, events)),
            Err(_) => self.noise(line),
        }
    }

    fn noise(&mut self, line: &str) {
        self.noise.push_str(line);
        self.noise.push('\n');
    }
}

fn read_lines(stream: impl Read, mut on_line: impl FnMut(&str)) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        on_line(&line);
    }
}

fn lock(output: &Mutex<HostOutput>) -> MutexGuard<'_, HostOutput> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}
