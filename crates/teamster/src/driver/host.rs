//! What a run or session gets from its runtime.

use std::path::PathBuf;
use std::sync::Arc;

use teamster_agents::launch::Launch;
use teamster_config::RestoreLog;
use teamster_process::{HostLease, Ledger, Supervisor};
use teamster_types::event::Credential;
use teamster_types::request::{OrphanPolicy, RunRequest};

use crate::agent_server::Password;
use crate::callers::Callers;
use crate::recording::redact::Redactor;
use crate::recording::{Recorder, Recording};
use crate::setup::environment::Environment;

/// What a run or session gets from its runtime.
#[derive(Clone)]
pub(crate) struct Host {
    /// The environment that the CLI inherits.
    pub(crate) environment: Environment,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) ledger: Arc<Ledger>,
    /// The lease under which the processes run.
    pub(crate) lease: Option<HostLease>,
    /// The log of changes to configuration files; `None` if no directory for it is known.
    pub(crate) restore_log: Option<RestoreLog>,
    /// Our password on the server that a CLI runs.
    pub(crate) password: Password,
    /// The agent's name.
    pub(crate) agent: String,
    /// The credential that the agent will use, if that is certain.
    pub(crate) credential: Option<Credential>,
    pub(crate) orphans: OrphanPolicy,
    /// The working directory: absolute, and a directory when the run was started.
    pub(crate) cwd: PathBuf,
    pub(crate) recording: Option<Recording>,
    /// The callers of this program's own tools that belong to the conversation.
    pub(crate) callers: Callers,
}

impl Host {
    /// Returns the redactor of the secrets that a CLI with this launch gets.
    pub(crate) fn redactor(&self, launch: &Launch, request: &RunRequest) -> Redactor {
        Redactor::new(&self.environment, &self.password, launch, request)
    }

    /// Returns the recorder of a process. The redactor removes its secrets from the recording.
    pub(crate) fn recorder(&self, redactor: &Arc<Redactor>) -> Recorder {
        Recorder::new(self.recording.as_ref(), redactor)
    }
}
