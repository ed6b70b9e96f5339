//! Starts runs and sessions.

mod builder;
mod error;
mod inputs;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use teamster_agents::agent::{Agent, Plan};
use teamster_agents::rules::ToolRules;
use teamster_config::RestoreLog;
use teamster_process::limitations::{Limitation, limitations};
use teamster_process::{Ledger, Supervisor};
use teamster_types::event::{Warning, WarningCode};
use teamster_types::request::{AgentInterface, ProjectTrust, RequestError, RunRequest};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

pub use self::builder::RuntimeBuilder;
pub use self::error::RunError;
use self::inputs::directory;
pub(crate) use self::inputs::{read_attachment, working_directory};

use crate::agent_server::Password;
use crate::callers::Callers;
use crate::driver::attempts::Again;
use crate::driver::budget::Budget;
use crate::driver::desk::Desk;
use crate::driver::pool::Pool;
use crate::driver::session::{OWN_TURNS, SessionJob};
use crate::driver::{self, Host, Job};
use crate::events::stamped::RunIdentity;
use crate::permits::{Permits, QueueFull, RuntimeStats};
use crate::recording::Recording;
use crate::registry::Registry;
use crate::run::Run;
use crate::session::{ORDERS, Session, SessionOptions, TURNS};
use crate::setup::crash_recovery;
use crate::setup::environment::{Environment, inherited};
use crate::threads;
use crate::tokio_check;
use crate::turns::Turns;

/// Starts runs and sessions. It can be shared between threads.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use teamster::{RunRequest, Runtime};
///
/// let runtime = Runtime::new();
/// let result = runtime.run("claude", RunRequest::new("Say hello"))?.result().await?;
/// println!("{}", result.final_text.escaped());
/// runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct Runtime {
    registry: Registry,
    environment: Environment,
    supervisor: Arc<Supervisor>,
    drivers: TaskTracker,
    permits: Permits,
    idle_timeout: Option<Duration>,
    ledger: Arc<Ledger>,
    journals: Option<RestoreLog>,
    swept: AtomicBool,
    pool: Option<Arc<Pool>>,
    requires_process_control: bool,
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
        self.journals.as_ref()
    }

    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Starts a run. Call it inside a Tokio runtime.
    ///
    /// Attachments are read before anything is started. If the CLI is missing or does not start, this call succeeds, and the
    /// run's stream reports the error.
    ///
    /// # Errors
    /// The agent is unknown, the request is invalid, or the Tokio runtime cannot drive an agent
    /// ([`TokioError`](crate::TokioError)).
    pub fn run(&self, agent: &str, mut request: RunRequest) -> Result<Run, RunError> {
        tokio_check::check()?;
        let agent = self.registry.get(agent)?;
        request.validate()?;
        let identity = RunIdentity::new(&request.labels);
        let (mut host, warnings) = self.host(&*agent, &identity, &mut request)?;
        for attachment in &mut request.attachments {
            read_attachment(attachment, &host.cwd)?;
        }
        let plan = plan(&*agent, &request)?;
        let redactor = Arc::new(host.redactor(&plan.launch, &request));
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
        let again = (request.retries.max > 0).then(|| Again { agent, request, permits: self.permits.clone() });
        let job = Job { plan, again, warnings, host, redactor, limits, budget };
        Ok(Run::start(&self.drivers, identity, |outlet| driver::drive(ticket, job, outlet).instrument(span)))
    }

    /// Opens a session: a conversation of many turns. Call it inside a Tokio runtime.
    ///
    /// If the agent has a live interface, its process is started at once, so that the first turn does not wait for it.
    ///
    /// # Errors
    /// The agent is unknown, the request is invalid, or the Tokio runtime cannot drive an agent
    /// ([`TokioError`](crate::TokioError)). A request with a prompt is invalid: prompts are sent turn by turn.
    pub fn open(&self, agent: &str, options: impl Into<SessionOptions>) -> Result<Session, RunError> {
        tokio_check::check()?;
        let SessionOptions { request: mut frame, handler } = options.into();
        let agent = self.registry.get(agent)?;
        frame.validate_session()?;
        let identity = RunIdentity::new(&frame.labels);
        let (mut host, warnings) = self.host(&*agent, &identity, &mut frame)?;
        // A request that cannot be planned is an error now, not with the first turn.
        let spawns =
            frame.interface != AgentInterface::Auto || guarded(&*agent, || agent.plan_session(&frame))?.is_none();
        if spawns {
            plan(&*agent, &frame.turn("x".into(), frame.conversation.clone()))?;
        }
        host.recording = self.recording(&*agent, &frame)?;
        self.sweep_once();
        let (orders, ordered) = mpsc::channel(ORDERS);
        let (begun, own_turns) = mpsc::channel(OWN_TURNS);
        let begun = (frame.background_tasks).then_some(begun);
        let (told, id) = watch::channel(None);
        let (abort, cwd) = (CancellationToken::new(), host.cwd.clone());
        let rules = ToolRules::read(&frame.permissions, Some(&cwd))?;
        let budget = Budget::of(&frame);
        let turns = Turns::default();
        let span = tracing::info_span!(
            "session",
            run_id = &*identity.run_id,
            agent = agent.name(),
            labels = ?identity.labels,
        );
        let desk = Desk::new(ordered, handler, rules, frame, turns.clone());
        let (permits, aborted) = (self.permits.clone(), abort.clone());
        let (pool, tasks) = (self.pool.clone(), self.drivers.clone());
        let (own_count, listed, ended) = (0, turns.clone(), CancellationToken::new());
        let (idle_timeout, permit, has_spoken, outlived) = (self.idle_timeout, None, false, Vec::new());
        let job = SessionJob {
            agent,
            host,
            permits,
            desk,
            budget,
            spawns,
            warnings,
            told,
            aborted,
            own: begun,
            own_count,
            turns: listed,
            idle_timeout,
            permit,
            has_spoken,
            outlived,
            identity: identity.clone(),
            pool,
            tasks,
        };
        let end = ended.clone().drop_guard();
        let driven = async move {
            Box::pin(driver::session::drive(job)).await;
            drop(end);
        };
        self.drivers.spawn(driven.instrument(span));
        let places = Arc::new(Semaphore::new(TURNS));
        let closing = AtomicBool::new(false);
        Ok(Session { orders, places, id, abort, ended, closing, turns, identity, own: Mutex::new(own_turns), cwd })
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
        let host = Host {
            environment: inherited(&self.environment, request, agent.capabilities(), &self.registry),
            supervisor: Arc::clone(&self.supervisor),
            ledger: Arc::clone(&self.ledger),
            journals: self.journals.clone(),
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
        if let Err(error) = crash_recovery::start(&self.drivers, &self.ledger, self.journals.as_ref()) {
            tracing::warn!("remaining processes of crashed hosts were not removed yet: {}", threads::explain(&error));
            // The next run tries again.
            self.swept.store(false, Ordering::Relaxed);
        }
    }

    /// Waits until every run of this runtime has ended and all its resources are released, including runs in the queue.
    ///
    /// Dropping a [`Run`] terminates its process tree. Before the Tokio runtime ends, wait for this call, so that trees can
    /// exit within the grace period. Otherwise they are killed.
    pub async fn shutdown(&self) {
        if let Some(pool) = &self.pool {
            pool.close();
        }
        self.drivers.close();
        self.drivers.wait().await;
        self.drivers.reopen();
        if let Some(pool) = &self.pool {
            pool.reopen();
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
            .finish_non_exhaustive()
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self::new()
    }
}

/// Plans a run. A panic of the agent becomes an error.
pub(crate) fn plan(agent: &dyn Agent, request: &RunRequest) -> Result<Plan, RunError> {
    guarded(agent, || agent.plan(request))
}

/// Calls an agent's code. A panic becomes an error.
pub(crate) fn guarded<T>(agent: &dyn Agent, ask: impl FnOnce() -> Result<T, RequestError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(ask))
        .map_err(|_| RunError::AgentPanicked { agent: agent.name().to_owned() })?
        .map_err(RunError::Request)
}
