//! The test's end of a host: what it has said so far, and the test's words to it.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use teamster::event::Event;

use crate::host::{PART, Word};

/// A host that runs.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    heard: Arc<Mutex<Heard>>,
}

/// What a host has said.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) events: Vec<Event>,
    /// The runs of a storm.
    pub(crate) survived: Vec<(u64, Vec<Event>)>,
    /// When the first `done` came.
    pub(crate) done: Option<Instant>,
    /// When the host said that all is over.
    pub(crate) ended: Option<Instant>,
    /// What it said that nobody understands, and its diagnostics.
    pub(crate) noise: String,
    /// It says no more.
    pub(crate) closed: bool,
}

impl Host {
    /// Starts a host, after a line of shell if there is one.
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
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else { bail!("no pipes") };
        thread::spawn({
            let heard = Arc::clone(&heard);
            move || {
                listen(stdout, |line| lock(&heard).line(line));
                lock(&heard).closed = true;
            }
        });
        thread::spawn({
            let heard = Arc::clone(&heard);
            move || listen(stderr, |line| lock(&heard).noise(line))
        });
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, heard })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn heard(&self) -> MutexGuard<'_, Heard> {
        lock(&self.heard)
    }

    /// A word to it.
    pub(crate) fn say(&mut self, word: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the host is told no more")?;
        writeln!(stdin, "{word}").with_context(|| format!("cannot say {word} to the host"))
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Tells it that it may go.
    pub(crate) fn dismiss(&mut self) {
        self.stdin = None;
    }

    /// How it ended, if it has.
    pub(crate) fn exit(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        _ = self.kill();
    }
}

impl Heard {
    /// What the agent has said, without its subagents.
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
            Ok(Word::Ended) => self.ended = Some(now),
            Ok(Word::Survived { aborted_after_us, events }) => self.survived.push((aborted_after_us, events)),
            Err(_) => self.noise(line),
        }
    }

    fn noise(&mut self, line: &str) {
        self.noise.push_str(line);
        self.noise.push('\n');
    }
}

fn listen(stream: impl Read, mut hear: impl FnMut(&str)) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        hear(&line);
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
