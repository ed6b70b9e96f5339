//! From a launch, which is data, to a running process.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use teamster_process::{
    FindError, OutputReader, PrivateDir, ProcessTree, Spawn, SpawnError, StdinWriter, TailReader, find_program,
};
use teamster_protocol::event::{ErrorCode, Failure};
use teamster_protocol::launch::{Arg, Launch, PrivateFile, ProtocolStream, Stdin};
use teamster_protocol::request::Limits;

use super::{Host, environment, stand_in};

/// A process with everything that belongs to it.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) tree: ProcessTree,
    pub(super) output: OutputReader,
    pub(super) diagnostics: TailReader,
    pub(super) stdin: StdinWriter,
    /// Removed when the process is gone.
    pub(super) _files: Option<PrivateDir>,
}

/// Writes the private files, finds the program and starts it.
pub(super) fn start(launch: Launch, host: Host, limits: &Limits) -> Result<Live, Failure> {
    let files = private_files(&launch, &host)?;
    let paths: BTreeMap<&str, &PathBuf> =
        files.iter().flat_map(|(_, paths)| paths).map(|(name, path)| (&**name, path)).collect();
    let resolve = |arg: &Arg| resolve(arg, &paths);
    let environment = environment::of_process(host.environment, &launch, &host.cwd, resolve)?;
    let path = environment.get(&OsString::from("PATH"));
    let program = find_program(launch.program.as_os_str(), path.map(OsString::as_os_str), &host.cwd)
        .map_err(|error| not_found(&launch.program, &error))?;
    let args = launch.args.iter().map(resolve).collect::<Result<_, _>>()?;
    let stdin = match launch.stdin {
        Stdin::Closed => teamster_process::Stdin::Null,
        Stdin::Write(_) | Stdin::Open => teamster_process::Stdin::Pipe,
    };
    let spawn = Spawn { program, args, env: environment, cwd: host.cwd, stdin };
    let (tree, pipes) = ProcessTree::spawn(&spawn).map_err(|error| not_spawned(&error))?;
    let (output, diagnostics) = match launch.protocol_stream {
        ProtocolStream::Stdout => (pipes.stdout, pipes.stderr),
        ProtocolStream::Stderr => (pipes.stderr, pipes.stdout),
    };
    let mut stdin = StdinWriter::new(pipes.stdin);
    if let Stdin::Write(bytes) = launch.stdin {
        stdin.push(Bytes::from(bytes));
        stdin.close_when_written();
    }
    Ok(Live {
        tree,
        output: OutputReader::new(output, limits.max_line_bytes),
        diagnostics: TailReader::new(diagnostics, limits.stderr_bytes),
        stdin,
        _files: files.map(|(directory, _)| directory),
    })
}

type Files = (PrivateDir, Vec<(Cow<'static, str>, PathBuf)>);

fn private_files(launch: &Launch, host: &Host) -> Result<Option<Files>, Failure> {
    if launch.files.is_empty() && launch.stand_in.is_none() {
        return Ok(None);
    }
    let wrong = |error: &teamster_process::PrivateError| Failure::new(ErrorCode::SpawnFailed, chain(error));
    let directory = PrivateDir::create(None, "run").map_err(|error| wrong(&error))?;
    let write = |file: &PrivateFile| Ok((file.name.clone(), directory.write(&file.name, &file.content)?));
    let mut paths: Vec<_> = launch.files.iter().map(write).collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    if let Some(home) = &launch.stand_in {
        paths.push((home.name.into(), stand_in::make(home, directory.path(), host)?));
    }
    Ok(Some((directory, paths)))
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
    Failure::new(code, format!("cannot run {}: {}", program.display(), chain(error)))
}

fn not_spawned(error: &SpawnError) -> Failure {
    let code = match error {
        SpawnError::NotFound { .. } => ErrorCode::CliNotFound,
        _ => ErrorCode::SpawnFailed,
    };
    Failure::new(code, chain(error))
}

/// An error with its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
