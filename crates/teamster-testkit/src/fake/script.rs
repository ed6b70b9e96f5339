//! The script as data, and its builder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a fake agent does, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Script {
    steps: Vec<Step>,
}

/// One thing that a fake agent does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Step {
    /// Writes a JSON document and a newline to stdout.
    Line(Value),
    /// Writes this text to stdout as it is.
    Text(String),
    /// Writes these bytes to stdout as they are.
    Bytes(Vec<u8>),
    /// Writes a JSON line many times, as fast as the pipe takes it.
    Burst {
        /// How often.
        count: u64,
        /// The line; `{n}` in its texts becomes the copy's number, counted from 0.
        line: Value,
    },
    /// Writes a line of this many `x` to stdout.
    LongLine(u64),
    /// Writes this text to stderr as it is.
    Stderr(String),
    /// Writes a line to stderr many times.
    StderrLines {
        /// How often.
        count: u64,
        /// The line; `{n}` becomes the copy's number, counted from 0.
        line: String,
    },
    /// Waits.
    SleepMs(u64),
    /// Waits until this file exists.
    AwaitFile(PathBuf),
    /// Waits until somebody opens this FIFO for writing: any number of agents wait for one moment, and use no time for it.
    AwaitWriter(PathBuf),
    /// Waits for a line on stdin that contains this text; lines before it are passed over. The end of stdin ends the wait.
    AwaitLine(String),
    /// Writes the line of stdin that it found last to stdout, a JSON object, with these members in place of its own.
    Echo(Map<String, Value>),
    /// Reads stdin to its end.
    ReadToEnd,
    /// Closes stdin. What has not been read by then is lost; one that is being read stays open.
    CloseStdin,
    /// Closes stdout.
    CloseStdout,
    /// From now on plays a script whenever this signal comes.
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
    /// Plays one of these scripts: the first where this file does not exist yet, and the next each time that it comes to this
    /// step again, in whichever process. The last one is played again and again.
    InTurn {
        /// Counts.
        file: PathBuf,
        /// The scripts.
        scripts: Vec<Script>,
    },
    /// Starts another fake agent.
    Spawn(Child),
    /// In a child: tells its parent to go on.
    Ready,
    /// Adds `NAME NUMBER` to a file, with the number of this process.
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
    /// Does nothing any more, until a signal ends it.
    Hang,
}

/// The signals that a fake can send to itself or react to.
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
    /// `SIGKILL`, which nothing reacts to.
    Kill,
    /// `SIGSTOP`, which nothing reacts to.
    Stop,
}

impl Signal {
    /// The signal of this name (`SIGTERM`), if it is one of them.
    pub fn named(name: &str) -> Option<Self> {
        Self::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(name.strip_prefix("SIG")?))
            .ok()
    }
}

/// Another fake agent that a fake agent starts. It inherits stderr.
///
/// The parent goes on when the child comes to its step [`Step::Ready`], or at once where it has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    pub(super) script: Script,
    pub(super) home: Home,
    pub(super) holds_stdout: bool,
}

/// Where a child lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Home {
    /// In its parent's process group.
    #[default]
    Group,
    /// In a process group of its own.
    OwnGroup,
    /// In a session of its own, as `setsid` makes it.
    Session,
}

impl Child {
    /// A child in its parent's group that holds its parent's stdout.
    pub fn new(script: Script) -> Self {
        Self { script, home: Home::Group, holds_stdout: true }
    }

    /// Puts it in a process group of its own.
    pub fn own_group(mut self) -> Self {
        self.home = Home::OwnGroup;
        self
    }

    /// Puts it in a session of its own.
    pub fn session(mut self) -> Self {
        self.home = Home::Session;
        self
    }

    /// Gives it no stdout.
    pub fn without_stdout(mut self) -> Self {
        self.holds_stdout = false;
        self
    }
}

impl Script {
    /// A script that does nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The script as JSON.
    pub fn to_json(&self) -> String {
        // Strings, numbers and JSON values: nothing in it can fail.
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

    /// Adds [`Step::InTurn`].
    #[must_use]
    pub fn in_turn(self, file: &Path, scripts: impl IntoIterator<Item = Script>) -> Self {
        self.step(Step::InTurn { file: file.to_owned(), scripts: scripts.into_iter().collect() })
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
