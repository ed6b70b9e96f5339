//! How a fault is made: what the CLI is, what stands around it, and what happens then, step by step.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use teamster::RunRequest;
use teamster::event::WarningCode;
use teamster_testkit::fake::Script;
use teamster_testkit::provider::Scenario;

/// How a CLI is started by default, in the shell script that stands around it.
const LAUNCH: &str = "exec \"$CLI\" \"$@\"";

/// One fault, ready to be made.
pub(crate) struct Fault {
    pub(crate) cli: Cli,
    /// Lines of shell around the CLI. `$CLI` is its program, `$T` a number of seconds by which a `sleep` is known as one of
    /// this cell, `$PLACE` a directory.
    pub(crate) shell: String,
    /// A line of shell before the host.
    pub(crate) host_shell: String,
    pub(crate) request: Vec<Change>,
    /// What the CLI has said by the end, or by the last moment that is waited for.
    pub(crate) said: String,
    /// What the run warns of, if it must.
    pub(crate) warned: Option<WarningCode>,
    pub(crate) steps: Vec<Step>,
    pub(crate) start: Start,
}

type Change = Box<dyn FnOnce(&mut RunRequest)>;

/// What runs as the CLI.
#[derive(Debug)]
pub(crate) enum Cli {
    /// The fake agent plays this.
    Fake(Script),
    /// The real CLI, whose model says this.
    Real(Scenario),
    /// Something that is no CLI.
    File(PathBuf),
}

/// What the host does at the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Starts the run and reads it as fast as it can.
    Eager,
    /// Reads an event in so many milliseconds.
    Slowly(u64),
    /// Aborts the run before it is polled the first time.
    Aborted,
    /// Starts as many runs as there are numbers, so many at a time, and aborts each after its number of microseconds.
    Storm { after_us: Vec<u64>, at_once: usize },
    /// Opens so many sessions, which take turns with one process at a time.
    Sessions(usize),
}

/// What happens, in order. The clock of the cell starts anew with each moment that has come.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Waits for a moment.
    Await(Moment),
    /// The caller's word to the run: `abort`, `interrupt`, `drop`, `pause`, `resume`.
    Say(&'static str),
    /// A signal to the CLI.
    Signal(Signal),
    /// A signal to one of the host's helpers.
    Helper(Helper, Signal),
    /// SIGKILL to the host.
    KillHost,
    /// SIGSTOP to the host; the CLI goes on.
    HaltHost,
    /// SIGCONT to the host after this long.
    ContinueHostAfter(Duration),
    /// The working directory is removed.
    RemoveProject,
    /// A file appears that the fake agent waits for.
    Touch(&'static str),
}

/// A process that looks after the CLI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    /// The parent of the CLI.
    Keeper,
    /// The parent of keepers.
    Supervisor,
}

/// When something is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The CLI's process is there.
    Running,
    /// All that is to be said has been read.
    Said,
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
    /// A file of this name is in the cell's place.
    File(&'static str),
    /// A file without a name that the host holds has so many bytes.
    Spilled(u64),
}

impl Fault {
    pub(crate) fn new(cli: Cli, said: impl Into<String>) -> Self {
        Self {
            cli,
            shell: LAUNCH.to_owned(),
            host_shell: String::new(),
            request: Vec::new(),
            said: said.into(),
            warned: None,
            steps: Vec::new(),
            start: Start::Eager,
        }
    }

    /// Lines of shell before the CLI.
    pub(crate) fn after_shell(mut self, lines: &str) -> Self {
        self.shell = format!("{lines}\n{LAUNCH}");
        self
    }

    /// Shell that starts the CLI itself.
    pub(crate) fn launched_by(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.shell);
        self
    }

    /// A line of shell before the host.
    pub(crate) fn host_after(mut self, line: &str) -> Self {
        line.clone_into(&mut self.host_shell);
        self
    }

    /// A change of the request.
    pub(crate) fn asking(mut self, change: impl FnOnce(&mut RunRequest) + 'static) -> Self {
        self.request.push(Box::new(change));
        self
    }

    /// What happens next.
    pub(crate) fn then<const COUNT: usize>(mut self, steps: [Step; COUNT]) -> Self {
        self.steps.extend(steps);
        self
    }

    pub(crate) fn saying(mut self, said: impl Into<String>) -> Self {
        self.said = said.into();
        self
    }

    /// What the run must warn of.
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
