//! From a launch, which is data, to a running process.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use teamster_agents::launch::{Arg, Launch, PrivateFile, ProtocolStream, Stdin};
use teamster_config::Merged;
use teamster_process::{
    FindError, Output, OutputReader, PrivateDir, ProcessTree, RunDir, Spawn, SpawnError, StdinWriter, TailReader,
    find_program,
};
use teamster_types::event::{ErrorCode, Failure, Warning, WarningCode};
use teamster_types::request::{Limits, OrphanPolicy};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::Host;
use super::link::Link;
use crate::agent_server::Server;
use crate::errors::with_causes;
use crate::recording::Recorder;
use crate::setup::environment::Environment;
use crate::setup::project_guard::ProjectGuard;
use crate::setup::{config_files, environment, shadow_home};
use crate::threads::blocking;

/// How many runs may make their files at once: each takes a thread meanwhile, and more are not faster. (What has begun
/// waits for nobody: a run that lives goes on and ends although these hang.)
static PLACES: Semaphore = Semaphore::const_new(16);

/// A process with everything that belongs to it.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) tree: ProcessTree,
    pub(super) output: OutputReader,
    pub(super) diagnostics: TailReader,
    pub(super) link: Link,
    /// To be removed when the process is gone.
    pub(super) belongings: Belongings,
    pub(super) orphans: OrphanPolicy,
    pub(super) project_guard: Option<ProjectGuard>,
    /// What went wrong, and did not keep the run from being started.
    pub(super) warning: Option<Warning>,
}

/// What a run has on disk. Removing it waits for the disk, and so does dropping it: the emergency path.
#[derive(Debug)]
pub(super) struct Belongings {
    /// Files of the user's with entries for this run.
    merged: Vec<Merged>,
    files: Option<PrivateDir>,
    /// Where the ledger knows the run, and its files are.
    run: Option<RunDir>,
}

/// What is on disk before the process is started, and what to start.
struct Prepared {
    spawn: Spawn,
    belongings: Belongings,
    project_guard: Option<ProjectGuard>,
    warning: Option<Warning>,
}

impl Belongings {
    /// Removes them, and waits until they are gone. What could not be restored is told.
    pub(super) async fn remove(mut self) -> Vec<Warning> {
        blocking(move || self.merged.drain(..).rev().filter_map(config_files::restore).collect()).await
    }

    /// The same where no stream is there that could tell.
    pub(super) async fn remove_unheard(self) {
        for warning in self.remove().await {
            tracing::warn!("{}", warning.message.escaped());
        }
    }

    /// Makes the tree known. The file is written anew: where it waits for the disk, nobody else does.
    async fn note(&mut self, leader: u32, keeper: u32) {
        let Some(mut run) = self.run.take() else { return };
        let noted = blocking(move || (run.record_tree(leader, Some(keeper)), run)).await;
        if let (Err(error), _) = &noted {
            // It is found by its environment, unless it throws that away.
            tracing::debug!(%error, "the ledger does not know the leader");
        }
        self.run = Some(noted.1);
    }
}

/// Writes the private files, finds the program and starts it. When `stop` is cancelled, it fails as soon as no process of
/// the start is left; it does not wait for a disk then.
pub(super) async fn start(
    launch: Launch,
    host: Host,
    recorder: Recorder,
    limits: &Limits,
    stop: &CancellationToken,
) -> Result<Live, Failure> {
    if let Some(failure) = launch.refused {
        return Err(failure);
    }
    let (supervisor, orphans) = (Arc::clone(&host.supervisor), host.orphans);
    let password = host.password.clone();
    let prepared = async {
        let place = PLACES.acquire().await;
        blocking(move || {
            // Kept until the disk has answered, though nobody may wait for that any more.
            let _place = place;
            let prepared = prepare(&launch, host);
            (launch, prepared)
        })
        .await
    };
    let Some((launch, prepared)) = stop.run_until_cancelled(prepared).await else {
        return Err(not_spawned(&SpawnError::Stopped));
    };
    let Prepared { spawn, mut belongings, project_guard, warning } = prepared?;
    let spawned = ProcessTree::spawn_until(&supervisor, &spawn, belongings.run.as_ref(), stop.cancelled()).await;
    let (tree, pipes) = match spawned {
        Ok(spawned) => spawned,
        Err(error) => {
            // What is not removed when the caller has stopped waiting is removed all the same.
            _ = stop.run_until_cancelled(belongings.remove_unheard()).await;
            return Err(not_spawned(&error));
        }
    };
    tracing::debug!(program = %launch.program.display(), pid = tree.pid(), "the CLI was started");
    belongings.note(tree.pid(), tree.keeper()).await;
    recorder.start(&launch.program, &spawn.args);
    let (output, diagnostics) = match launch.protocol_stream {
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
    let server = launch.server.map(|server| Server::new(server.user, &password, limits));
    Ok(Live {
        tree,
        output: OutputReader::new(output, limits.max_line_bytes),
        diagnostics: TailReader::new(diagnostics, limits.stderr_bytes),
        link: Link { stdin, server, recorder },
        belongings,
        orphans,
        project_guard,
        warning,
    })
}

fn prepare(launch: &Launch, mut host: Host) -> Result<Prepared, Failure> {
    let (run, warning) = match host.ledger.register(&host.agent) {
        Ok(run) => (Some(run), None),
        Err(error) => (None, Some(Warning::new(WarningCode::LedgerUnavailable, with_causes(&error)))),
    };
    let mut belongings = Belongings { merged: Vec::new(), files: None, run };
    let files = private_files(launch, &host, &mut belongings)?;
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
    // Last: what fails before it changes nothing of the user's.
    for file in &launch.config_files {
        belongings.merged.push(config_files::merge(
            file,
            host.journals.as_ref(),
            &host.agent,
            &host.cwd,
            &environment,
        )?);
    }
    let spawn = Spawn { program, args, env: environment, cwd: host.cwd, stdin, output };
    Ok(Prepared { spawn, belongings, project_guard, warning })
}

type Files = Vec<(Cow<'static, str>, PathBuf)>;

fn private_files(launch: &Launch, host: &Host, belongings: &mut Belongings) -> Result<Files, Failure> {
    if launch.files.is_empty() && launch.shadow_home.is_none() {
        return Ok(Vec::new());
    }
    let wrong = |error: &teamster_process::PrivateError| Failure::new(ErrorCode::SpawnFailed, with_causes(error));
    let directory = match &belongings.run {
        Some(run) => run.private_dir(),
        None => PrivateDir::create(None, "run"),
    };
    let directory = belongings.files.insert(directory.map_err(|error| wrong(&error))?);
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
        _ => ErrorCode::SpawnFailed,
    };
    Failure::new(code, with_causes(error))
}
