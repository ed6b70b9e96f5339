//! How a run or turn ended.

use std::borrow::Cow;

use teamster_agents::protocol::ExitReport;
use teamster_agents::transcript::Cause;
use teamster_process::Exit;
use teamster_types::event::LeftProcess;

/// How a run, an attempt or a turn ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Why the driver ended it. `None` if the agent ended it.
    pub(super) cause: Option<Cause>,
    /// `None` if no process exited.
    pub(super) exit: Option<Exit>,
    /// Whether the driver terminated the process because its work was done. Then the exit is not reported.
    pub(super) is_shut_down: bool,
    /// Whether the agent wrote anything.
    pub(super) has_output: bool,
    /// The tail of stderr, redacted.
    pub(super) stderr: String,
    /// Remaining processes of the tree.
    pub(super) left: Vec<LeftProcess>,
}

impl Ended {
    /// The driver ended it without a process.
    pub(super) fn by(cause: Cause) -> Self {
        Self { cause: Some(cause), ..Self::default() }
    }

    /// Returns the name of the signal that killed the leader.
    pub(super) fn signal(&self) -> Option<Cow<'static, str>> {
        self.exit.and_then(Exit::signal_name)
    }

    /// Returns the exit for the protocol and the transcript.
    pub(super) fn report<'a>(&'a self, signal: Option<&'a str>) -> Option<ExitReport<'a>> {
        self.exit.map(|exit| ExitReport { code: exit.code, signal, stderr: &self.stderr })
    }
}
