//! Starts runs.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use teamster_agents::agent::{Agent, Plan};
use teamster_agents::rules::ToolRules;
use teamster_config::Journals;
use teamster_process::limitations::{Limitation, join, limitations};
use teamster_process::{Ledger, Supervisor};
use teamster_types::event::{Warning, WarningCode};
use teamster_types::request::{Attachment, BackgroundTasks, Mode, ProjectTrust, RequestError, RunRequest};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::callers::Callers;
use crate::driver::attempts::Again;
use crate::driver::budget::Budget;
use crate::driver::desk::Desk;
use crate::driver::environment::{Environment, inherited};
use crate::driver::pool::{Pool, Spares};
use crate::driver::record::Recording;
use crate::driver::redact::Redactor;
use crate::driver::server::Password;
use crate::driver::session::{OWN_TURNS, SessionJob};
use crate::driver::{self, Host, Job, sweep, threads};
use crate::gate::{Gate, QueueFull, RuntimeStats};
use crate::registry::{Registry, UnknownAgent};
use crate::run::Run;
use crate::session::{ORDERS, Opening, Session, TURNS};
use crate::stamp::RunIdentity;
use crate::tokio_check::{self, TokioError};
use crate::turns::Turns;

/// The largest attachment: what a vendor takes in one request.
const MAX_ATTACHMENT_BYTES: u64 = 32 << 20;

/// Starts runs. Holds no state of a run, and is shared freely between threads.
pub struct Runtime {
    registry: Registry,
    environment: Environment,
    supervisor: Arc<Supervisor>,
    drivers: TaskTracker,
    gate: Gate,
    idle_timeout: Option<Duration>,
    ledger: Arc<Ledger>,
    journals: Option<Journals>,
    swept: AtomicBool,
    pool: Option<Arc<Pool>>,
    requires_process_control: bool,
}

/// Why a run was refused. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No such agent.
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
    /// The request is wrong, or the agent cannot do what it asks for.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The Tokio runtime of the caller cannot drive an agent.
    #[error(transparent)]
    Tokio(#[from] TokioError),
    /// The working directory of this process is gone.
    #[error("cannot tell the working directory of this process; name one in the request")]
    NoWorkingDirectory(#[source] std::io::Error),
    /// The system has no randomness to give, of which a password for the run is made.
    #[error("cannot make a password for the run")]
    NoRandomness(#[source] std::io::Error),
    /// What goes in and out of the CLI cannot be recorded there.
    #[error("cannot record the run in {}: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// As many runs and turns wait already as [may wait](Runtime::max_queued_turns).
    #[error("{limit} turns wait for a place already, as many as may wait; try again in a moment")]
    QueueFull {
        /// How many may wait.
        limit: usize,
    },
    /// The system does not let every process of a run be found and ended, and the runtime requires that.
    #[error("not every process of a run could be found and ended: {}", join(limitations))]
    ProcessControl {
        /// What the system refuses.
        limitations: Vec<Limitation>,
    },
    /// The agent's code panicked.
    #[error("a bug in Teamster or in the agent {agent}: it panicked when it planned the run")]
    AgentPanicked {
        /// The agent.
        agent: String,
    },
}

impl Runtime {
    /// A runtime with the agents that come with Teamster. Runs inherit the environment that this process has now.
    pub fn new() -> Self {
        Self::with_registry(Registry::default())
    }

    /// A runtime with these agents.
    pub fn with_registry(registry: Registry) -> Self {
        Self::with_environment(registry, std::env::vars_os())
    }

    /// A runtime whose runs get this environment and nothing else (beside what their requests add).
    pub fn with_environment(registry: Registry, environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            registry,
            environment: environment.into_iter().collect(),
            supervisor: Arc::default(),
            drivers: TaskTracker::new(),
            gate: Gate::default(),
            idle_timeout: None,
            ledger: Arc::new(Ledger::of_user()),
            journals: journals_of_user(),
            swept: AtomicBool::new(false),
            pool: None,
            requires_process_control: false,
        }
    }

    /// Uses this ledger instead of the user's own: runs are known there while they live, and what crashes left there is
    /// swept with the first run.
    #[must_use]
    pub fn known_in(mut self, ledger: Ledger) -> Self {
        self.ledger = Arc::new(ledger);
        self
    }

    /// Notes here what runs change in configuration files of the user's, where they are asked to
    /// ([`McpDelivery::MergeRestore`](teamster_types::request::McpDelivery)); what crashes left of such changes is undone
    /// with the first run. The usual place is `$XDG_STATE_HOME/teamster/restore`, or `~/.local/state/teamster/restore`; runs that share a file must share it.
    #[must_use]
    pub fn restoring_by(mut self, journals: Journals) -> Self {
        self.journals = Some(journals);
        self
    }

    /// At most this many runs, and turns of sessions, run at once. Further ones wait, in the order in which they were asked for;
    /// with [queue keys](RunRequest::queue_key), the keys take turns.
    ///
    /// Of a run that waits nothing is started and nothing is written. It can be interrupted, aborted or dropped like
    /// any other, which ends it at once. Its limits, its deadline too, and its duration count from its start: they are
    /// about what the agent takes, not about how busy the host is. A run gives its place on when no process of its tree
    /// is left, whether or not its events have been read. A turn that waits for a person (a permission request, a question)
    /// gives its place back until it is answered, and has it again before new turns.
    #[must_use]
    pub fn max_concurrent_turns(self, turns: NonZeroUsize) -> Self {
        self.gate.limit_turns(turns);
        self
    }

    /// At most this many agent processes live at once, those of idle sessions and spare ones included. When a turn needs a process
    /// and the limit is reached, the process of an idle session is closed, the least recently used first; that session's next turn
    /// resumes the conversation in a new process. If no process is idle, the turn waits.
    ///
    /// Processes are kept where a conversation cannot be resumed, and in sessions with background tasks.
    #[must_use]
    pub fn max_live_processes(self, processes: NonZeroUsize) -> Self {
        self.gate.limit_processes(processes);
        self
    }

    /// At most this many runs and turns wait. A further run is refused with [`RunError::QueueFull`], a further turn of a session
    /// ends with the error [`QUEUE_FULL`](teamster_types::event::ErrorCode::QueueFull). With 0 none wait.
    #[must_use]
    pub fn max_queued_turns(self, turns: usize) -> Self {
        self.gate.limit_queue(turns);
        self
    }

    /// Closes the process of a session that has had no turn for this long. The next turn resumes the conversation in a new
    /// process. What lives in the process alone is gone then: grants for the rest of the session (`AllowAlways`), commands
    /// that the agent has left running. Processes are kept where a conversation cannot be resumed, and in sessions with
    /// background tasks.
    #[must_use]
    pub fn idle_process_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// What this runtime does now: processes that live, turns that run and wait, by agent.
    pub fn stats(&self) -> RuntimeStats {
        self.gate.stats()
    }

    /// Keeps spare processes for sessions. When one was opened, a process of the same configuration (agent, directory, request) is
    /// started, and the next session like it gets that and does not wait for a start. Without this there are none.
    ///
    /// There is one spare for each configuration, the newest ones if they are too many. Sessions that go on with a conversation
    /// have none, nor those that are recorded, or delivered their MCP servers by the user's own file. They end with the runtime,
    /// and by [`shutdown`](Self::shutdown).
    #[must_use]
    pub fn with_spares(mut self, spares: Spares) -> Self {
        self.pool = Some(Pool::new(spares));
        self
    }

    /// Has processes supervised by this instead of by the file of this program, executed anew.
    #[must_use]
    pub fn supervised_by(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = Arc::new(supervisor);
        self
    }

    /// Refuses to start anything where the system does not let every process of a run be found and ended: without handles of
    /// processes (`pidfd_open`, which older container runtimes refuse), or without a `/proc` that shows the processes of this
    /// namespace. By default runs start there too, with a warning that says what is not guaranteed.
    #[must_use]
    pub fn requiring_process_control(mut self) -> Self {
        self.requires_process_control = true;
        self
    }

    /// The agents.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Where runs are known while they live.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Where it is noted what is changed in configuration files, if there is a place for it.
    pub fn journals(&self) -> Option<&Journals> {
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
    /// Attachments are read here, before anything is started. A CLI that is missing or does not start is no error of
    /// this call: the run's stream says so and ends like any other.
    ///
    /// # Errors
    /// When the agent is unknown, the request is wrong, or the Tokio runtime cannot drive an agent ([`TokioError`]).
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
        let redactor = Arc::new(Redactor::new(&host, &plan.launch, &request));
        let ticket = self.gate.queue(request.queue_key.as_deref(), agent.name(), true);
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
        let again = (request.retries.max > 0).then(|| Again { agent, request, gate: self.gate.clone() });
        let job = Job { plan, again, warnings, host, redactor, limits, budget };
        Ok(Run::start(&self.drivers, identity, |outlet| driver::drive(ticket, job, outlet).instrument(span)))
    }

    /// Opens a session: a conversation of many turns. Call it inside a Tokio runtime.
    ///
    /// Where the agent has a form that lives through many turns, its process is started at once, so that the first turn finds
    /// it warm.
    ///
    /// # Errors
    /// When the agent is unknown, the request is wrong, or the Tokio runtime cannot drive an agent ([`TokioError`]). A
    /// prompt in the request is wrong, since prompts are sent turn by turn.
    pub fn open(&self, agent: &str, opening: impl Into<Opening>) -> Result<Session, RunError> {
        tokio_check::check()?;
        let Opening { mut frame, handler } = opening.into();
        let agent = self.registry.get(agent)?;
        frame.validate_session()?;
        let identity = RunIdentity::new(&frame.labels);
        let (mut host, warnings) = self.host(&*agent, &identity, &mut frame)?;
        // What cannot be planned is told now and not with the first turn.
        let spawns = frame.mode != Mode::Auto || guarded(&*agent, || agent.plan_session(&frame))?.is_none();
        if spawns {
            plan(&*agent, &frame.turn("x".into(), frame.conversation.clone()))?;
        }
        host.recording = self.recording(&*agent, &frame)?;
        self.sweep_once();
        let (orders, ordered) = mpsc::channel(ORDERS);
        let (begun, own_turns) = mpsc::channel(OWN_TURNS);
        let begun = (frame.background_tasks == BackgroundTasks::On).then_some(begun);
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
        let (gate, aborted) = (self.gate.clone(), abort.clone());
        let (pool, tasks) = (self.pool.clone(), self.drivers.clone());
        let (own_count, listed, ended) = (0, turns.clone(), CancellationToken::new());
        let (idle_timeout, permit, has_spoken, outlived) = (self.idle_timeout, None, false, Vec::new());
        let job = SessionJob {
            agent,
            host,
            gate,
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

    /// What a run or a session of this request gets from us, and what is to be said of it. The request is made precise.
    fn host(
        &self,
        agent: &dyn Agent,
        identity: &RunIdentity,
        request: &mut RunRequest,
    ) -> Result<(Host, Vec<Warning>), RunError> {
        request.limits = request.limits.clone().capped();
        let mut cwd = working_directory(request.cwd.as_deref())?;
        if request.project_trust == ProjectTrust::Untrusted {
            // An agent may have to be told which directory that is: by its own name, however it was reached.
            cwd = cwd.canonicalize().unwrap_or(cwd);
        }
        // Some protocols name it.
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
            background: request.background,
            cwd,
            recording: None,
            callers: Callers::of(agent.name(), &identity.run_id, request),
        };
        Ok((host, warnings))
    }

    /// Begins the recording that the request asks for.
    fn recording(&self, agent: &dyn Agent, request: &RunRequest) -> Result<Option<Recording>, RunError> {
        let Some(path) = &request.record else { return Ok(None) };
        let began = Recording::begin(path, agent.name(), request, &self.drivers);
        began.map(Some).map_err(|source| RunError::Record { path: path.clone(), source })
    }

    /// Ends and removes what crashes left, beside the first run: no run waits for it.
    fn sweep_once(&self) {
        if self.swept.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Err(error) = sweep::begin(&self.drivers, &self.ledger, self.journals.as_ref()) {
            tracing::warn!("what crashes left is not swept yet: {}", threads::explain(&error));
            // The next run tries again.
            self.swept.store(false, Ordering::Relaxed);
        }
    }

    /// Waits until every run of this runtime has ended and left nothing behind; those too that wait for their turn.
    ///
    /// Dropping a [`Run`] asks its process tree to end; who leaves the Tokio runtime right after that should wait here,
    /// so that the tree can end politely. (Otherwise it is killed.)
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
    /// Shows no variable's value: many are secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Runtime")
            .field("registry", &self.registry)
            .field("environment", &self.environment.len())
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}

impl Default for Runtime {
    fn default() -> Self {
        Self::new()
    }
}

fn journals_of_user() -> Option<Journals> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    Some(Journals::in_directory(state.join("teamster/restore")))
}

/// Asks the agent how it would run this. A bug in one agent must not take the host down with it.
pub(crate) fn plan(agent: &dyn Agent, request: &RunRequest) -> Result<Plan, RunError> {
    guarded(agent, || agent.plan(request))
}

/// Asks an agent something.
pub(crate) fn guarded<T>(agent: &dyn Agent, ask: impl FnOnce() -> Result<T, RequestError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(ask))
        .map_err(|_| RunError::AgentPanicked { agent: agent.name().to_owned() })?
        .map_err(RunError::Request)
}

pub(crate) fn working_directory(asked: Option<&Path>) -> Result<PathBuf, RunError> {
    let own = || std::env::current_dir().map_err(RunError::NoWorkingDirectory);
    let cwd = match asked {
        Some(path) if path.is_absolute() => path.to_owned(),
        Some(path) => own()?.join(path),
        None => own()?,
    };
    directory("cwd", &cwd)?;
    Ok(cwd)
}

fn directory(field: &'static str, path: &Path) -> Result<(), RequestError> {
    if path.is_dir() {
        return Ok(());
    }
    Err(RequestError::NotADirectory { field, path: path.display().to_string() })
}

pub(crate) fn read_attachment(attachment: &mut Attachment, cwd: &Path) -> Result<(), RequestError> {
    let Attachment::Path(path) = attachment else { return Ok(()) };
    let wrong = |problem: String| RequestError::Attachment { name: path.display().to_string(), problem };
    let whole = cwd.join(&*path);
    let size = std::fs::metadata(&whole).map_err(|error| wrong(error.to_string()))?;
    if !size.is_file() {
        return Err(wrong("it is no file".to_owned()));
    }
    if size.len() > MAX_ATTACHMENT_BYTES {
        return Err(wrong(format!("it has {} bytes, more than {MAX_ATTACHMENT_BYTES}", size.len())));
    }
    let data = std::fs::read(&whole).map_err(|error| wrong(error.to_string()))?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    *attachment = Attachment::Data { name, data };
    Ok(())
}
