//! Starts runs and sessions.

mod builder;
mod conversation;
mod error;
mod inputs;
mod planning;
mod shutdown;
mod warm_up;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use teamster_agents::agent::Agent;
use teamster_agents::rules::ToolRules;
use teamster_config::RestoreLog;
use teamster_process::limitations::{Limitation, limitations};
use teamster_process::{HostLease, Ledger, Supervisor};
use teamster_types::event::{Warning, WarningCode};
use teamster_types::request::{AgentInterface, ProjectTrust, RunRequest};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

pub use self::builder::RuntimeBuilder;
pub use self::error::RunError;
use self::inputs::absolute_program;
use self::inputs::directory;
pub(crate) use self::inputs::{read_attachments, read_attachments_on_thread, working_directory};
use self::planning::plan_turns;
pub(crate) use self::planning::{plan_run, plan_session};
use crate::agent_server::Password;
use crate::callers::Callers;
use crate::driver::attempts::Retry;
use crate::driver::budget::Budget;
use crate::driver::host::Host;
use crate::driver::run::{self, RunJob};
use crate::driver::session::{self, MAX_AGENT_TURNS, SessionJob};
use crate::driver::session_queue::SessionQueue;
use crate::driver::warm_pool::WarmPool;
use crate::events::stamped::RunIdentity;
use crate::live::LiveRuns;
use crate::permits::{Permits, QueueFull, RuntimeStats};
use crate::recording::Recording;
use crate::registry::Registry;
use crate::run::Run;
use crate::session::order::MAX_ORDERS;
use crate::session::{MAX_TURNS, Session, SessionOptions, SessionRules};
use crate::setup::environment::{Environment, inherited};
use crate::setup::{crash_recovery, credential};
use crate::threads;
use crate::tokio_check;
use crate::turns::list::Turns;

/// Starts runs and sessions. It can be shared between threads.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use teamster::{RunRequest, Runtime};
///
/// let runtime = Runtime::new();
/// let result = runtime.run("claude", RunRequest::new("Say hello"))?.result().await?;
/// println!("{}", result.final_text.escaped());
/// runtime.shutdown(Duration::from_secs(5)).await;
/// # Ok(())
/// # }
/// ```
pub struct Runtime {
    registry: Registry,
    environment: Environment,
    supervisor: Arc<Supervisor>,
    drivers: TaskTracker,
    /// The idle processes of the warm pool.
    warm_processes: TaskTracker,
    live: LiveRuns,
    permits: Permits,
    idle_timeout: Option<Duration>,
    ledger: Arc<Ledger>,
    restore_log: Option<RestoreLog>,
    host_lease: Option<HostLease>,
    swept: AtomicBool,
    warm_pool: Option<Arc<WarmPool>>,
    requires_process_control: bool,
}

impl Runtime {
    /// Returns the numbers of live processes, running turns and waiting turns, by agent.
    pub fn stats(&self) -> RuntimeStats {
        self.permits.stats()
    }

    /// Returns the agents.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the ledger, which contains the live runs.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the log of changes to the user's configuration files. `None` if no directory for it is known.
    pub fn restore_log(&self) -> Option<&RestoreLog> {
        self.restore_log.as_ref()
    }

    /// Returns the lease under which agents run ([`RuntimeBuilder::host_lease`]).
    pub fn host_lease(&self) -> Option<&HostLease> {
        self.host_lease.as_ref()
    }

    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Starts a run. Call it inside a Tokio runtime.
    ///
    /// Attachments that are paths are read on the calling thread, before anything is started. If the disk may be slow, await
    /// [`read_attachments`](Self::read_attachments) before. For a conversation that is resumed, the store of the agent's sessions is
    /// read in the same way. If the CLI is missing or does not start, this call succeeds, and
    /// the run's stream reports the error.
    ///
    /// # Errors
    /// The agent is unknown, the request is invalid, the Tokio runtime cannot drive an agent
    /// ([`TokioError`](crate::TokioError)), or this runtime is [shut down](Self::shutdown).
    pub fn run(&self, agent: &str, mut request: RunRequest) -> Result<Run, RunError> {
        tokio_check::check()?;
        self.live.check()?;
        let agent = self.registry.get(agent)?;
        request.validate()?;
        let identity = RunIdentity::new(&request.labels);
        let (mut host, warnings) = self.host(&*agent, &identity, &mut request)?;
        // Every agent must get the same rules, also one that would ignore an invalid one.
        ToolRules::read(&request.permissions, Some(&host.cwd))?;
        read_attachments(&mut request.attachments, &host.cwd)?;
        let refused = conversation::resolve(&*agent, &host.environment, &mut request, &host.cwd);
        let mut plan = plan_run(&*agent, &request)?;
        plan.launch.refused = refused.or(plan.launch.refused);
        let redactor = Arc::new(host.redactor(&plan.launch, &request));
        let live = self.live.add(agent.name(), &identity, request.limits.grace, None)?;
        let ticket = self.permits.enqueue(request.queue_key.as_deref(), agent.name(), true);
        let span = tracing::info_span!(
            "run",
            run_id = &*identity.run_id,
            agent = agent.name(),
            labels = ?identity.labels,
            attempt = 1,
            session_id = tracing::field::Empty,
        );
        let ticket = ticket.map_err(|QueueFull { limit }| RunError::QueueFull { limit })?;
        host.recording = self.recording(&*agent, &request)?;
        self.sweep_once();
        let (limits, budget) = (request.limits.clone(), Budget::of(&request));
        let retry = (request.retries.max > 0).then(|| Retry { agent, request, permits: self.permits.clone() });
        let job = RunJob { plan, retry, warnings, host, redactor, limits, budget, live };
        let stop = self.live.stop_tokens().child();
        Ok(Run::start(&self.drivers, stop, identity, |handle| run::drive(ticket, job, handle).instrument(span)))
    }

    /// Replaces the paths of a request's attachments with the contents of the files, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// The working directory does not exist, or a file cannot be attached.
    pub async fn read_attachments(&self, request: &mut RunRequest) -> Result<(), RunError> {
        let cwd = working_directory(request.cwd.as_deref())?;
        Ok(read_attachments_on_thread(&mut request.attachments, cwd).await?)
    }

    /// Opens a session: a conversation of many turns. Call it inside a Tokio runtime.
    ///
    /// If the agent has a live interface, its process is started at once, so that the first turn does not wait for it.
    ///
    /// # Errors
    /// The agent is unknown, the request is invalid, the Tokio runtime cannot drive an agent
    /// ([`TokioError`](crate::TokioError)), or this runtime is [shut down](Self::shutdown). A request with a prompt is invalid:
    /// prompts are sent turn by turn.
    pub fn open(&self, agent: &str, options: impl Into<SessionOptions>) -> Result<Session, RunError> {
        tokio_check::check()?;
        self.live.check()?;
        let SessionOptions { mut request, handler } = options.into();
        let agent = self.registry.get(agent)?;
        request.validate_session()?;
        let identity = RunIdentity::new(&request.labels);
        let (mut host, warnings) = self.host(&*agent, &identity, &mut request)?;
        let refused = conversation::resolve(&*agent, &host.environment, &mut request, &host.cwd);
        // A request that cannot be planned is an error now, and not with the first turn.
        let process_per_turn = request.interface != AgentInterface::Auto || plan_session(&*agent, &request)?.is_none();
        if process_per_turn {
            plan_turns(&*agent, &request)?;
        }
        let cwd = host.cwd.clone();
        let rules = ToolRules::read(&request.permissions, Some(&cwd))?;
        host.recording = self.recording(&*agent, &request)?;
        self.sweep_once();
        let (orders, received_orders) = mpsc::channel(MAX_ORDERS);
        let (agent_turns, received_agent_turns) = mpsc::channel(MAX_AGENT_TURNS);
        let (session_id, id) = watch::channel(None);
        let (stop, ended, turns) = (self.live.stop_tokens().child(), CancellationToken::new(), Turns::default());
        let live = self.live.add(agent.name(), &identity, request.limits.grace, Some(turns.clone()))?;
        let span = tracing::info_span!(
            "session",
            run_id = &*identity.run_id,
            agent = agent.name(),
            labels = ?identity.labels,
        );
        let job = SessionJob {
            agent,
            host,
            permits: self.permits.clone(),
            budget: Budget::of(&request),
            process_per_turn,
            refused,
            warnings,
            session_id,
            stop: stop.clone(),
            live,
            agent_turns: request.background_tasks.then_some(agent_turns),
            queue: SessionQueue::new(received_orders, handler, rules.clone(), request, turns.clone()),
            turns: turns.clone(),
            warm_pool: self.warm_pool.clone(),
            warm_processes: self.warm_processes.clone(),
            idle_timeout: self.idle_timeout,
            identity: identity.clone(),
        };
        let end = ended.clone().drop_guard();
        let driven = async move {
            Box::pin(session::drive(job)).await;
            drop(end);
        };
        self.drivers.spawn(driven.instrument(span));
        let turn_permits = Arc::new(Semaphore::new(MAX_TURNS));
        let agent_turns = Mutex::new(received_agent_turns);
        let closing = AtomicBool::new(false);
        let rules = SessionRules::new(rules);
        Ok(Session { orders, turn_permits, id, stop, ended, closing, turns, identity, agent_turns, cwd, rules })
    }

    /// Returns the host's part of a run or session, and the warnings about the request. Makes paths of the request absolute.
    fn host(
        &self,
        agent: &dyn Agent,
        identity: &RunIdentity,
        request: &mut RunRequest,
    ) -> Result<(Host, Vec<Warning>), RunError> {
        request.limits = request.limits.clone().capped();
        let mut cwd = working_directory(request.cwd.as_deref())?;
        absolute_program(request)?;
        if request.project_trust == ProjectTrust::Untrusted {
            // An agent may need the canonical path of the directory, whatever links lead to it.
            cwd = cwd.canonicalize().unwrap_or(cwd);
        }
        // Some protocols contain the directory.
        request.cwd = Some(cwd.clone());
        for dir in &request.add_dirs {
            directory("add_dirs", &cwd.join(dir))?;
        }
        let limitations = limitations();
        if self.requires_process_control && !limitations.is_empty() {
            return Err(RunError::ProcessControl { limitations });
        }
        let mut warnings = match agent.capabilities() {
            Some(capabilities) => capabilities.check(agent.name(), request)?,
            None => Vec::new(),
        };
        let limited = |limitation: Limitation| Warning::new(WarningCode::ProcessControlLimited, limitation.to_string());
        warnings.extend(limitations.into_iter().map(limited));
        let environment = inherited(&self.environment, request, agent.capabilities(), &self.registry);
        let host = Host {
            credential: credential::find(agent, request, &environment),
            environment,
            supervisor: Arc::clone(&self.supervisor),
            ledger: Arc::clone(&self.ledger),
            lease: self.host_lease.clone(),
            restore_log: self.restore_log.clone(),
            password: Password::new().map_err(RunError::NoRandomness)?,
            agent: agent.name().to_owned(),
            orphans: request.orphans,
            cwd,
            recording: None,
            callers: Callers::of(agent.name(), &identity.run_id, request),
        };
        Ok((host, warnings))
    }

    /// Starts the recording, if the request names one.
    fn recording(&self, agent: &dyn Agent, request: &RunRequest) -> Result<Option<Recording>, RunError> {
        let Some(path) = &request.record else { return Ok(None) };
        let began = Recording::create(path, agent.name(), request, &self.drivers);
        began.map(Some).map_err(|source| RunError::Record { path: path.clone(), source })
    }

    /// Removes what crashed hosts left, concurrently with the first run. No run waits for it.
    fn sweep_once(&self) {
        if self.swept.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Err(error) = crash_recovery::start(&self.drivers, &self.ledger, self.restore_log.as_ref()) {
            tracing::warn!("remaining processes of crashed hosts were not removed yet: {}", threads::explain(&error));
            // The next run tries again.
            self.swept.store(false, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Runtime {
    /// Shows no values of variables, because many are secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Runtime")
            .field("registry", &self.registry)
            .field("environment", &self.environment.len())
            .field("permits", &self.permits)
            .field("requires_process_control", &self.requires_process_control)
            .finish_non_exhaustive()
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self::new()
    }
}
