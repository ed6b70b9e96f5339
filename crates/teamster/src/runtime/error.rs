//! Why a run or a session cannot start.

use std::path::PathBuf;

use teamster_process::SpawnError;
use teamster_process::limitations::{Limitation, join};
use teamster_types::request::RequestError;

use crate::live::ShutDown;
use crate::registry::UnknownAgent;
use crate::tokio_check::TokioError;

/// The reason why a run or session was rejected. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No agent has this name.
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
    /// The request is invalid, or the agent does not support it.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The caller's Tokio runtime cannot drive an agent.
    #[error(transparent)]
    Tokio(#[from] TokioError),
    /// The working directory of this process no longer exists.
    #[error("the working directory of this process cannot be determined; set `cwd` in the request")]
    NoWorkingDirectory(#[source] std::io::Error),
    /// The operating system returned no random bytes for the run's password.
    #[error("no password for the run can be created, because the system returned no random bytes")]
    NoRandomness(#[source] std::io::Error),
    /// The recording cannot be created.
    #[error("the recording {} cannot be created: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The queue has reached its [limit](crate::RuntimeBuilder::max_queued_turns).
    #[error("the queue is full: {limit} turns are waiting; try again in a moment")]
    QueueFull {
        /// The maximum number of waiting turns.
        limit: usize,
    },
    /// The runtime is [shut down](crate::Runtime::shutdown), and starts nothing more.
    #[error("the runtime is shut down, and starts no more runs")]
    ShutDown,
    /// The system does not let Teamster find and kill every process of a run, and the runtime
    /// [requires](crate::RuntimeBuilder::require_process_control) that.
    #[error("not every process of a run could be found and killed: {}", join(limitations))]
    ProcessControl {
        /// What the system refuses.
        limitations: Vec<Limitation>,
    },
    /// The agent cannot take a second turn, which a session needs: it keeps no process between turns, and cannot resume a
    /// conversation. Use [`Runtime::run`](crate::Runtime::run) for single prompts.
    #[error("{agent} cannot take a second turn, so it cannot hold a session: {source}")]
    SendNotSupported {
        /// The agent.
        agent: String,
        /// Why it cannot resume its conversation.
        source: RequestError,
    },
    /// The supervisor process does not start or does not answer. Only [`Runtime::warm_up`](crate::Runtime::warm_up) returns
    /// this error; in a run, it is an event.
    #[error("the supervisor process of runs does not start")]
    Supervisor(#[source] SpawnError),
    /// The agent's code panicked.
    #[error("the agent {agent} panicked while it planned the run; this is a bug in the agent or in Teamster")]
    AgentPanicked {
        /// The agent.
        agent: String,
    },
}

impl From<ShutDown> for RunError {
    fn from(_: ShutDown) -> Self {
        Self::ShutDown
    }
}
