//! The description of a fault: the CLI, its environment, and the steps of the cell.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use teamster::RunRequest;
use teamster::event::WarningCode;
use teamster_testkit::fake::Script;
use teamster_testkit::provider::Scenario;

/// The default start of the CLI in the shell script around it.
const LAUNCH: &str = "exec \"$CLI\" \"$@\"";

/// A fault, and how it is caused.
pub(crate) struct Fault {
    pub(crate) cli: Cli,
    /// Lines of shell around the CLI. `$CLI` is its program, `$T` a number of seconds by which a `sleep` is known as one of
    /// this cell, `$PLACE` a directory.
    pub(crate) shell: String,
    /// Shell that runs before the host.
    pub(crate) host_shell: String,
    pub(crate) request: Vec<Change>,
    /// The text of the CLI at the end, or at the last awaited moment.
    pub(crate) expected_text: String,
    /// The code of a warning that the run must emit.
    pub(crate) warned: Option<WarningCode>,
    pub(crate) steps: Vec<Step>,
    pub(crate) start: Start,
}

type Change = Box<dyn FnOnce(&mut RunRequest)>;

/// The program that runs as the CLI.
#[derive(Debug)]
pub(crate) enum Cli {
    /// The fake agent runs this script.
    Fake(Script),
    /// The real CLI, whose model follows this scenario.
    Real(Scenario),
    /// A file that is not a CLI.
    File(PathBuf),
}

/// What the host does at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Starts the run, and reads as fast as it can.
    Eager,
    /// Reads an event per this number of milliseconds.
    Slowly(u64),
    /// Aborts the run before it is polled the first time.
    Aborted,
    /// Starts a run for each number, at most `at_once` at a time, and aborts it after this number of microseconds.
    Storm { after_us: Vec<u64>, at_once: usize },
    /// Opens this number of sessions, which take turns with one process at a time.
    Sessions(usize),
}

/// A step of a cell. Each awaited moment restarts the clock of the cell.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Waits for a moment.
    Await(Moment),
    /// A command to the host: `abort`, `interrupt`, `drop`, `pause`, `resume`.
    Command(&'static str),
    /// A signal to the CLI.
    Signal(Signal),
    /// A signal to one of the host's helpers.
    Helper(Helper, Signal),
    /// SIGKILL to the host.
    KillHost,
    /// SIGSTOP to the host. The CLI continues.
    HaltHost,
    /// SIGCONT to the host after this long.
    ContinueHostAfter(Duration),
    /// The working directory is removed.
    RemoveProject,
    /// A file appears that the fake agent waits for.
    Touch(&'static str),
}

/// A helper process above the CLI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    /// The parent of the CLI.
    Keeper,
    /// The parent of keepers.
    Supervisor,
}

/// A state of the cell that a step awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The CLI's process exists.
    Running,
    /// The expected text was read.
    TextRead,
    /// The model is in the middle of an answer.
    Streaming,
    /// A tool runs.
    Tool,
    /// The shell around the CLI sleeps, since the CLI is gone.
    Lingering,
    /// The CLI is gone.
    Gone,
    /// The CLI is stopped.
    Stopped,
    /// A file of this name exists in the cell's directory.
    File(&'static str),
    /// An unlinked file of the host has this number of bytes.
    Spilled(u64),
}

impl Fault {
    pub(crate) fn new(cli: Cli, expected_text: impl Into<String>) -> Self {
        Self {
            cli,
            shell: LAUNCH.to_owned(),
            host_shell: String::new(),
            request: Vec::new(),
            expected_text: expected_text.into(),
            warned: None,
            steps: Vec::new(),
            start: Start::Eager,
        }
    }

    /// Runs shell before the CLI.
    pub(crate) fn after_shell(mut self, lines: &str) -> Self {
        self.shell = format!("{lines}\n{LAUNCH}");
        self
    }

    /// Runs shell that starts the CLI.
    pub(crate) fn launched_by(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.shell);
        self
    }

    /// Runs shell before the host.
    pub(crate) fn host_after(mut self, line: &str) -> Self {
        line.clone_into(&mut self.host_shell);
        self
    }

    /// Changes the request.
    pub(crate) fn asking(mut self, change: impl FnOnce(&mut RunRequest) + 'static) -> Self {
        self.request.push(Box::new(change));
        self
    }

    /// Appends steps.
    pub(crate) fn then<const COUNT: usize>(mut self, steps: [Step; COUNT]) -> Self {
        self.steps.extend(steps);
        self
    }

    pub(crate) fn expecting_text(mut self, text: impl Into<String>) -> Self {
        self.expected_text = text.into();
        self
    }

    /// Requires a warning with this code.
    pub(crate) fn warning(mut self, code: WarningCode) -> Self {
        self.warned = Some(code);
        self
    }

    pub(crate) fn starting(mut self, start: Start) -> Self {
        self.start = start;
        self
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Fault")
            .field("cli", &self.cli)
            .field("shell", &self.shell)
            .field("steps", &self.steps)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}
