//! The script as data, and its builder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The steps that a fake agent performs, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Script {
    steps: Vec<Step>,
}

/// One step of a fake agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Step {
    /// Writes a JSON document and a newline to stdout.
    Line(Value),
    /// Writes this text to stdout unchanged.
    Text(String),
    /// Writes these bytes to stdout unchanged.
    Bytes(Vec<u8>),
    /// Writes a JSON line many times, as fast as the pipe takes it.
    Burst {
        /// The number of copies.
        count: u64,
        /// The line. `{n}` in its strings is replaced by the copy's number, counted from 0.
        line: Value,
    },
    /// Writes a line of this many `x` to stdout.
    LongLine(u64),
    /// Writes this text to stderr unchanged.
    Stderr(String),
    /// Writes a line to stderr many times.
    StderrLines {
        /// The number of copies.
        count: u64,
        /// The line. `{n}` is replaced by the copy's number, counted from 0.
        line: String,
    },
    /// Waits for this many milliseconds.
    SleepMs(u64),
    /// Waits until this file exists.
    AwaitFile(PathBuf),
    /// Waits until a process opens this FIFO for writing. Any number of agents can wait for the
    /// same moment without using CPU time.
    AwaitWriter(PathBuf),
    /// Waits for a line on stdin that contains this text, and skips the lines before it. The end of
    /// stdin ends the wait.
    AwaitLine(String),
    /// Writes the stdin line that was found last, a JSON object, to stdout. These members replace
    /// its own.
    Echo(Map<String, Value>),
    /// Reads stdin to its end.
    ReadToEnd,
    /// Closes stdin. Input that has not been read is lost; a read in progress keeps stdin open.
    CloseStdin,
    /// Closes stdout.
    CloseStdout,
    /// From now on plays a script each time this signal arrives.
    OnSignal {
        /// The signal.
        signal: Signal,
        /// The script.
        play: Script,
    },
    /// From now on plays a script for each line on stdin that contains a text.
    OnLine {
        /// The text.
        containing: String,
        /// The script.
        play: Script,
    },
    /// Plays one of these scripts: the first if this file does not exist yet, and the next one each
    /// time any process performs this step. The last script is repeated.
    PlayNext {
        /// The file that counts.
        file: PathBuf,
        /// The scripts.
        scripts: Vec<Script>,
    },
    /// Starts another fake agent.
    Spawn(Child),
    /// In a child: lets its parent continue.
    Ready,
    /// Appends `NAME PID` to a file, with the pid of this process.
    WritePid {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
    },
    /// Exits with this code.
    Exit(i32),
    /// Sends a signal to itself.
    Raise(Signal),
    /// Waits until a signal ends the process.
    Hang,
}

/// The signals that a fake agent can send to itself or handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Signal {
    /// `SIGHUP`.
    Hup,
    /// `SIGINT`.
    Int,
    /// `SIGTERM`.
    Term,
    /// `SIGABRT`.
    Abrt,
    /// `SIGKILL`, which cannot be handled.
    Kill,
    /// `SIGSTOP`, which cannot be handled.
    Stop,
}

impl Signal {
    /// Returns the signal of this name (`SIGTERM`), if it is one of these.
    pub fn named(name: &str) -> Option<Self> {
        Self::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(name.strip_prefix("SIG")?))
            .ok()
    }
}

/// A fake agent that another fake agent starts. It inherits stderr.
///
/// The parent continues when the child performs [`Step::Ready`], or at once if the child has no
/// such step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    pub(super) script: Script,
    pub(super) placement: Placement,
    pub(super) holds_stdout: bool,
}

/// The process group and session of a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Placement {
    /// In its parent's process group.
    #[default]
    Group,
    /// In its own process group.
    OwnGroup,
    /// In its own session, created with `setsid`.
    Session,
}

impl Child {
    /// Creates a child in its parent's process group that holds its parent's stdout.
    pub fn new(script: Script) -> Self {
        Self { script, placement: Placement::Group, holds_stdout: true }
    }

    /// Puts the child into its own process group.
    pub fn own_group(mut self) -> Self {
        self.placement = Placement::OwnGroup;
        self
    }

    /// Puts the child into its own session.
    pub fn session(mut self) -> Self {
        self.placement = Placement::Session;
        self
    }

    /// Redirects the child's stdout to `/dev/null`.
    pub fn without_stdout(mut self) -> Self {
        self.holds_stdout = false;
        self
    }
}

impl Script {
    /// Creates a script without steps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the script as JSON.
    pub fn to_json(&self) -> String {
        // It contains only strings, numbers and JSON values, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Adds a step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds the steps of another script.
    #[must_use]
    pub fn then(mut self, other: Script) -> Self {
        self.steps.extend(other.steps);
        self
    }

    /// Adds [`Step::Line`].
    #[must_use]
    pub fn line(self, line: Value) -> Self {
        self.step(Step::Line(line))
    }

    /// Adds [`Step::Text`].
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.step(Step::Text(text.into()))
    }

    /// Adds [`Step::Bytes`].
    #[must_use]
    pub fn bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(Step::Bytes(bytes.into()))
    }

    /// Adds [`Step::Burst`].
    #[must_use]
    pub fn burst(self, count: u64, line: Value) -> Self {
        self.step(Step::Burst { count, line })
    }

    /// Adds [`Step::LongLine`].
    #[must_use]
    pub fn long_line(self, bytes: u64) -> Self {
        self.step(Step::LongLine(bytes))
    }

    /// Adds [`Step::Stderr`].
    #[must_use]
    pub fn stderr(self, text: impl Into<String>) -> Self {
        self.step(Step::Stderr(text.into()))
    }

    /// Adds [`Step::StderrLines`].
    #[must_use]
    pub fn stderr_lines(self, count: u64, line: impl Into<String>) -> Self {
        self.step(Step::StderrLines { count, line: line.into() })
    }

    /// Adds [`Step::SleepMs`].
    #[must_use]
    pub fn sleep(self, duration: Duration) -> Self {
        self.step(Step::SleepMs(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Adds [`Step::AwaitFile`].
    #[must_use]
    pub fn await_file(self, file: &Path) -> Self {
        self.step(Step::AwaitFile(file.to_owned()))
    }

    /// Adds [`Step::AwaitWriter`].
    #[must_use]
    pub fn await_writer(self, fifo: &Path) -> Self {
        self.step(Step::AwaitWriter(fifo.to_owned()))
    }

    /// Adds [`Step::AwaitLine`].
    #[must_use]
    pub fn await_line(self, containing: impl Into<String>) -> Self {
        self.step(Step::AwaitLine(containing.into()))
    }

    /// Adds [`Step::Echo`].
    #[must_use]
    pub fn echo(self, members: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        self.step(Step::Echo(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
    }

    /// Adds [`Step::ReadToEnd`].
    #[must_use]
    pub fn read_to_end(self) -> Self {
        self.step(Step::ReadToEnd)
    }

    /// Adds [`Step::CloseStdin`].
    #[must_use]
    pub fn close_stdin(self) -> Self {
        self.step(Step::CloseStdin)
    }

    /// Adds [`Step::CloseStdout`].
    #[must_use]
    pub fn close_stdout(self) -> Self {
        self.step(Step::CloseStdout)
    }

    /// Adds [`Step::OnSignal`].
    #[must_use]
    pub fn on_signal(self, signal: Signal, play: Script) -> Self {
        self.step(Step::OnSignal { signal, play })
    }

    /// Ignores a signal from now on.
    #[must_use]
    pub fn ignore(self, signal: Signal) -> Self {
        self.on_signal(signal, Script::new())
    }

    /// Adds [`Step::OnLine`].
    #[must_use]
    pub fn on_line(self, containing: impl Into<String>, play: Script) -> Self {
        self.step(Step::OnLine { containing: containing.into(), play })
    }

    /// Adds [`Step::PlayNext`].
    #[must_use]
    pub fn play_next(self, file: &Path, scripts: impl IntoIterator<Item = Script>) -> Self {
        self.step(Step::PlayNext { file: file.to_owned(), scripts: scripts.into_iter().collect() })
    }

    /// Adds [`Step::Spawn`].
    #[must_use]
    pub fn spawn(self, child: Child) -> Self {
        self.step(Step::Spawn(child))
    }

    /// Adds [`Step::Ready`].
    #[must_use]
    pub fn ready(self) -> Self {
        self.step(Step::Ready)
    }

    /// Adds [`Step::WritePid`].
    #[must_use]
    pub fn write_pid(self, file: &Path, name: impl Into<String>) -> Self {
        self.step(Step::WritePid { file: file.to_owned(), name: name.into() })
    }

    /// Adds [`Step::Exit`].
    #[must_use]
    pub fn exit(self, code: i32) -> Self {
        self.step(Step::Exit(code))
    }

    /// Adds [`Step::Raise`].
    #[must_use]
    pub fn raise(self, signal: Signal) -> Self {
        self.step(Step::Raise(signal))
    }

    /// Adds [`Step::Hang`].
    #[must_use]
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }
}
