//! The options of a runtime.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use teamster_config::RestoreLog;
use teamster_process::{HostLease, Ledger, Supervisor};
use tokio_util::task::TaskTracker;

use super::Runtime;
use crate::driver::warm_pool::{WarmPool, WarmPoolConfig};
use crate::live::LiveRuns;
use crate::permits::Permits;
use crate::registry::Registry;
use crate::setup::environment::Environment;

/// Builds a [`Runtime`].
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::time::Duration;
/// use teamster::Runtime;
///
/// let runtime = Runtime::builder()
///     .max_concurrent_turns(NonZeroUsize::MIN)
///     .idle_process_timeout(Duration::from_secs(600))
///     .build();
/// assert_eq!(runtime.stats().total.running_turns, 0);
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct RuntimeBuilder {
    registry: Registry,
    environment: Option<Environment>,
    supervisor: Option<Supervisor>,
    permits: Permits,
    idle_timeout: Option<Duration>,
    ledger: Option<Ledger>,
    restore_log: Option<RestoreLog>,
    host_lease: Option<HostLease>,
    warm_pool: Option<WarmPoolConfig>,
    requires_process_control: bool,
}

impl RuntimeBuilder {
    /// Sets the agents. The default is the agents that come with Teamster.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Sets the environment that runs inherit. The default is the environment of this process at the call of
    /// [`build`](Self::build).
    pub fn environment(mut self, environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.environment = Some(environment.into_iter().collect());
        self
    }

    /// Sets the ledger, which contains the live runs. The default is the user's ledger. The first run of a runtime kills
    /// the remaining processes of crashed hosts that the ledger contains.
    pub fn ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Sets the log of changes to the user's configuration files, which
    /// [`McpDelivery::MergeRestore`](teamster_types::request::McpDelivery) makes. The first run of a runtime reverts changes of
    /// crashed hosts. The default is `$XDG_STATE_HOME/teamster/restore` or `~/.local/state/teamster/restore`. Runs that change
    /// the same file must use the same log.
    pub fn restore_log(mut self, log: RestoreLog) -> Self {
        self.restore_log = Some(log);
        self
    }

    /// Runs agents under a lease. When its deadline passes without a [renewal](HostLease::renew), every agent process is
    /// killed, including those of idle sessions and of the warm pool, even while this process is stopped (SIGSTOP). A run
    /// ends with the error [`LEASE_EXPIRED`](teamster_types::event::ErrorCode::LeaseExpired) then. By default there is no
    /// lease.
    ///
    /// It is for hosts that may run an agent only as long as they hold a lock which expires, for example on a
    /// conversation that another host may continue. Processes that a run keeps alive
    /// ([`OrphanPolicy::Keep`](teamster_types::request::OrphanPolicy)) no longer belong to it.
    pub fn host_lease(mut self, lease: HostLease) -> Self {
        self.host_lease = Some(lease);
        self
    }

    /// Limits the number of runs and turns of sessions that run at once. Further ones wait in the order of their calls; with
    /// [queue keys](crate::RunRequest::queue_key), the keys take turns.
    ///
    /// A waiting run has no process and no files. It can be interrupted, aborted or dropped, and ends at once then. Its time
    /// limits and its duration start with its process. A run releases its permit when no process of its tree is left, whether
    /// or not its events were read. A turn that waits for a person (a permission request, a question) releases its permit
    /// until the answer, and then has priority over new turns.
    pub fn max_concurrent_turns(self, turns: NonZeroUsize) -> Self {
        self.permits.limit_turns(turns);
        self
    }

    /// Limits the number of live CLI processes, including those of idle sessions and of the warm pool. If a turn needs a process
    /// and the limit is reached, the session that was idle longest loses its process; its next turn resumes the conversation in
    /// a new process. If no process is idle, the turn waits.
    ///
    /// A process is kept if its conversation cannot be resumed, or if its session has background tasks.
    pub fn max_live_processes(self, processes: NonZeroUsize) -> Self {
        self.permits.limit_processes(processes);
        self
    }

    /// Limits the number of waiting runs and turns. A further run is rejected with [`RunError::QueueFull`](super::RunError).
    /// A further turn of a session ends with the error [`QUEUE_FULL`](teamster_types::event::ErrorCode::QueueFull). With 0, none
    /// can wait.
    pub fn max_queued_turns(self, turns: usize) -> Self {
        self.permits.limit_queue(turns);
        self
    }

    /// Closes the process of a session that had no turn for this time. The next turn resumes the conversation in a new process.
    /// State of the process is lost then: permissions for the rest of the session (`AllowAlways`), and running commands. A process
    /// is kept if its conversation cannot be resumed, or if its session has background tasks.
    pub fn idle_process_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Keeps idle processes ready for new sessions. After a session was opened, another process with the same agent, directory
    /// and request is started. The next session like it uses that process and does not wait for a start. By default there is no
    /// warm pool.
    ///
    /// There is at most one idle process for each configuration; the newest are kept if there are too many. Sessions that
    /// resume a conversation do not use the pool, nor do recorded sessions, or sessions whose MCP servers use the user's own
    /// file. The idle processes end with the runtime and by [`Runtime::shutdown`].
    pub fn warm_pool(mut self, config: WarmPoolConfig) -> Self {
        self.warm_pool = Some(config);
        self
    }

    /// Sets the program that supervises processes. The default is the executable of this process, started again.
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = Some(supervisor);
        self
    }

    /// Rejects runs if the system does not let Teamster find and kill every process of a run. This needs process handles
    /// (`pidfd_open`, which older container runtimes refuse) and a `/proc` that shows the processes of this namespace. By default
    /// such runs start with the warning `PROCESS_CONTROL_LIMITED`.
    pub fn require_process_control(mut self) -> Self {
        self.requires_process_control = true;
        self
    }

    /// Creates the runtime. Nothing is started, and no file is read.
    #[must_use]
    pub fn build(self) -> Runtime {
        // A closed tracker still accepts tasks. It is closed so that a wait ends whenever no task is left.
        let (drivers, warm_processes) = (TaskTracker::new(), TaskTracker::new());
        drivers.close();
        warm_processes.close();
        Runtime {
            registry: self.registry,
            environment: self.environment.unwrap_or_else(|| std::env::vars_os().collect()),
            supervisor: self.supervisor.map(Arc::new).unwrap_or_default(),
            drivers,
            warm_processes,
            live: LiveRuns::default(),
            permits: self.permits,
            idle_timeout: self.idle_timeout,
            ledger: Arc::new(self.ledger.unwrap_or_else(Ledger::of_user)),
            restore_log: self.restore_log.or_else(restore_log_of_user),
            host_lease: self.host_lease,
            swept: AtomicBool::new(false),
            warm_pool: self.warm_pool.map(WarmPool::new),
            requires_process_control: self.requires_process_control,
        }
    }
}

fn restore_log_of_user() -> Option<RestoreLog> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    Some(RestoreLog::in_directory(state.join("teamster/restore")))
}

impl Runtime {
    /// Creates a runtime with the agents that come with Teamster. Runs inherit the current environment of this process.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder for a runtime with other options.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }
}
