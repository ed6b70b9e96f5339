//! Starts an agent process from a launch, which is data.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use teamster_agents::agent::Plan;
use teamster_agents::launch::{Arg, Launch, PrivateFile, ProtocolStream, Stdin};
use teamster_process::spawn::Pipes;
use teamster_process::{
    FindError, Keeper, Output, OutputReader, PrivateDir, Spawn, SpawnError, StdinWriter, Supervisor, TailReader,
    find_program,
};
use teamster_types::event::{ErrorCode, Failure, Warning, WarningCode};
use teamster_types::request::Limits;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::AgentProcess;
use super::link::Link;
use super::output::AgentOutput;
use super::protocol::GuardedProtocol;
use super::resources::RunResources;
use super::timer::ProtocolTimer;
use crate::agent_server::{Password, Server};
use crate::driver::host::Host;
use crate::driver::log;
use crate::errors::with_causes;
use crate::recording::Recorder;
use crate::recording::redact::Redactor;
use crate::setup::environment::Environment;
use crate::setup::project_guard::ProjectGuard;
use crate::setup::{config_files, environment, shadow_home};
use crate::threads::blocking;

/// The number of starts that may write their files at once. Each takes a thread, and more threads are not faster. Only starts
/// wait for a permit; running processes never do.
static STARTUP_PERMITS: Semaphore = Semaphore::const_new(16);

/// How long a cancelled start waits for a disk, so that the files of the run are removed when the call returns.
const DISK_TIMEOUT: Duration = Duration::from_secs(3);

/// What to start, after the files of the run were written.
struct Prepared {
    spawn: Spawn,
    project_guard: Option<ProjectGuard>,
    warning: Option<Warning>,
}

impl AgentProcess {
    /// Writes the run's files, finds the program and starts it. If `cancel` is cancelled, the call fails as soon as no process and
    /// no file of the start is left. It waits for a disk for at most [`DISK_TIMEOUT`]; a thread removes the files later.
    pub(in crate::driver) async fn start(
        plan: Plan,
        host: Host,
        redactor: Arc<Redactor>,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Self, Failure> {
        let Plan { launch, protocol } = plan;
        if let Some(failure) = launch.refused {
            return Err(failure);
        }
        let (supervisor, orphans, password) = (Arc::clone(&host.supervisor), host.orphans, host.password.clone());
        let (recorder, lease) = (host.recorder(&redactor), host.lease.clone());
        // The keeper starts while the files are written.
        let (prepared, keeper) = Box::pin(async {
            tokio::join!(wait_for_disk(prepare_on_thread(launch, host), cancel), request_keeper(&supervisor, cancel))
        })
        .await;
        log::step("prepared and keeper ready");
        let Some((launch, mut resources, prepared)) = prepared else {
            return Err(not_spawned(&SpawnError::Stopped));
        };
        let Prepared { spawn, project_guard, warning } = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => {
                // The removal of files needs descriptors, and the keeper holds some.
                drop(keeper);
                _ = wait_for_disk(resources.remove_and_log(), cancel).await;
                return Err(failure);
            }
        };
        let spawned = match keeper.map(|keeper| keeper.with_lease(lease.as_ref())) {
            Ok(keeper) => keeper.spawn_until(&spawn, resources.run_dir.as_ref(), cancel.cancelled()).await,
            Err(error) => Err(error),
        };
        let (tree, pipes) = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                _ = wait_for_disk(resources.remove_and_log(), cancel).await;
                return Err(not_spawned(&error));
            }
        };
        log::step("CLI started");
        tracing::debug!(program = %launch.program.display(), pid = tree.pid(), "the CLI was started");
        resources.record_tree(tree.pid(), tree.keeper());
        recorder.start(&launch.program, &spawn.args);
        let (link, output) = connect(launch, pipes, recorder, &password, limits);
        let protocol = GuardedProtocol::new(protocol);
        Ok(Self { tree, resources, link, output, protocol, redactor, orphans, project_guard, warning })
    }
}

async fn request_keeper(supervisor: &Supervisor, cancel: &CancellationToken) -> Result<Keeper, SpawnError> {
    let keeper = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(SpawnError::Stopped),
        keeper = Keeper::request(supervisor) => keeper,
    };
    log::step("keeper ready");
    keeper
}

/// Waits for work of a thread on a disk, after the cancellation for at most [`DISK_TIMEOUT`]. The thread continues in any case.
async fn wait_for_disk<T>(work: impl Future<Output = T>, cancel: &CancellationToken) -> Option<T> {
    let mut work = pin!(work);
    match cancel.run_until_cancelled(&mut work).await {
        Some(done) => Some(done),
        None => tokio::time::timeout(DISK_TIMEOUT, work).await.ok(),
    }
}

/// Connects the pipes of a process. Queues the input of the launch.
fn connect(
    launch: Launch,
    pipes: Pipes,
    recorder: Recorder,
    password: &Password,
    limits: &Limits,
) -> (Link, AgentOutput) {
    let (lines, diagnostics) = match launch.protocol_stream {
        ProtocolStream::Stdout => (pipes.stdout, pipes.stderr),
        ProtocolStream::Stderr => (pipes.stderr, pipes.stdout),
    };
    let mut stdin = StdinWriter::new(pipes.stdin);
    if let Stdin::Write(bytes) = launch.stdin {
        recorder.input(&bytes);
        recorder.input_end();
        stdin.push(Bytes::from(bytes));
        stdin.close_when_written();
    }
    let server = launch.server.map(|server| Server::new(server.user, password, limits));
    let lines = OutputReader::new(lines, limits.max_line_bytes);
    let diagnostics = TailReader::new(diagnostics, limits.stderr_bytes);
    (
        Link { stdin, server, recorder, timer: ProtocolTimer::default() },
        AgentOutput::new(lines, diagnostics, limits.max_line_bytes),
    )
}

/// Prepares a start on a thread that may wait for the disk.
async fn prepare_on_thread(launch: Launch, host: Host) -> (Launch, RunResources, Result<Prepared, Failure>) {
    // A caller that stops waiting releases it, so that starts on a disk that does not answer do not block others.
    let _permit = STARTUP_PERMITS.acquire().await;
    blocking(move || {
        log::step("thread started");
        let mut resources = RunResources { merged: Vec::new(), files: None, run_dir: None, recording: None };
        let prepared = prepare(&launch, host, &mut resources);
        log::step("prepared");
        (launch, resources, prepared)
    })
    .await
}

/// Writes the files of a run to `resources`, also those of a start that fails.
fn prepare(launch: &Launch, mut host: Host, resources: &mut RunResources) -> Result<Prepared, Failure> {
    let warning = match host.ledger.register(&host.agent) {
        Ok(run) => {
            resources.run_dir = Some(run);
            None
        }
        Err(error) => Some(Warning::new(WarningCode::LedgerUnavailable, with_causes(&error))),
    };
    log::step("ledger entry written");
    let files = private_files(launch, &host, resources)?;
    log::step("private files written");
    let paths: BTreeMap<&str, &PathBuf> = files.iter().map(|(name, path)| (&**name, path)).collect();
    let resolve = |arg: &Arg| resolve(arg, &paths);
    let inherited = std::mem::take(&mut host.environment);
    let mut environment = environment::for_process(inherited, launch, &host.cwd, resolve)?;
    if let Some(server) = &launch.server {
        environment.insert(server.password_variable.into(), host.password.expose().into());
    }
    let project_guard =
        launch.forbidden_files.map(|forbidden_files| ProjectGuard::new(forbidden_files, &host.cwd, &environment));
    project_guard.as_ref().map_or(Ok(()), ProjectGuard::check)?;
    let path = environment.get(&OsString::from("PATH"));
    let program = find_program(launch.program.as_os_str(), path.map(OsString::as_os_str), &host.cwd)
        .map_err(|error| not_found(&launch.program, &error))?;
    let args = launch.args.iter().map(resolve).collect::<Result<_, _>>()?;
    let stdin = match launch.stdin {
        Stdin::Closed => teamster_process::Stdin::Null,
        Stdin::Write(_) | Stdin::Open => teamster_process::Stdin::Pipe,
    };
    let output = match launch.protocol_stream {
        ProtocolStream::Stdout => Output::Stdout,
        ProtocolStream::Stderr => Output::Stderr,
    };
    // The last step: a start that fails before it has not changed any file of the user.
    for file in &launch.config_files {
        resources.merged.push(config_files::merge(
            file,
            host.restore_log.as_ref(),
            &host.agent,
            &host.cwd,
            &environment,
        )?);
    }
    let spawn = Spawn { program, args, env: environment, cwd: host.cwd, stdin, output };
    Ok(Prepared { spawn, project_guard, warning })
}

type Files = Vec<(Cow<'static, str>, PathBuf)>;

fn private_files(launch: &Launch, host: &Host, resources: &mut RunResources) -> Result<Files, Failure> {
    if launch.files.is_empty() && launch.shadow_home.is_none() {
        return Ok(Vec::new());
    }
    let wrong = |error: &teamster_process::PrivateError| Failure::new(ErrorCode::SpawnFailed, with_causes(error));
    let directory = match &resources.run_dir {
        Some(run_dir) => run_dir.private_dir(),
        None => PrivateDir::create(None, "run"),
    };
    let directory = resources.files.insert(directory.map_err(|error| wrong(&error))?);
    let write = |file: &PrivateFile| Ok((file.name.clone(), directory.write(&file.name, &file.content)?));
    let mut paths: Vec<_> = launch.files.iter().map(write).collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    if let Some(home) = &launch.shadow_home {
        paths
            .push((home.name.into(), shadow_home::make(home, directory.path(), &visible_to(launch, host), &host.cwd)?));
    }
    Ok(paths)
}

/// Returns the environment that the CLI will have, without the values that are paths of private files.
fn visible_to(launch: &Launch, host: &Host) -> Environment {
    let mut environment = host.environment.clone();
    for (name, value) in &launch.env {
        match value {
            Some(Arg::Text(value)) => drop(environment.insert(name.into(), value.into())),
            Some(Arg::PathOf { .. }) => {}
            None => drop(environment.remove(std::ffi::OsStr::new(name))),
        }
    }
    environment
}

fn resolve(arg: &Arg, paths: &BTreeMap<&str, &PathBuf>) -> Result<OsString, Failure> {
    match arg {
        Arg::Text(text) => Ok(text.into()),
        Arg::PathOf { before, file, after } => {
            let path = paths.get(&**file).ok_or_else(|| {
                Failure::new(ErrorCode::SpawnFailed, format!("the launch names the private file {file}, but has none"))
            })?;
            let mut whole = OsString::from(before);
            whole.push(path);
            whole.push(after);
            Ok(whole)
        }
    }
}

fn not_found(program: &Path, error: &FindError) -> Failure {
    let code = match error {
        FindError::NotInPath { .. } | FindError::Missing { .. } | FindError::Dangling { .. } => ErrorCode::CliNotFound,
        _ => ErrorCode::SpawnFailed,
    };
    Failure::new(code, format!("cannot run {}: {}", program.display(), with_causes(error)))
}

fn not_spawned(error: &SpawnError) -> Failure {
    let code = match error {
        SpawnError::NotFound { .. } => ErrorCode::CliNotFound,
        SpawnError::LeaseExpired => ErrorCode::LeaseExpired,
        _ => ErrorCode::SpawnFailed,
    };
    Failure::new(code, with_causes(error))
}
