//! Commands: the event on stdin, in a supervised process tree.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use teamster_process::{Output, Pipes, ProcessTree, Spawn, Stdin, StdinWriter, Supervisor, TailReader, find_program};
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;

use super::config::{HookConfig, HookConfigError};
use super::error::{CallError, FailedCall};
use super::payload::Payload;

/// The variables that each command gets, if the gateway has them.
const VARIABLES: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// The variable with the name of the event.
const EVENT_VARIABLE: &str = "TEAMSTER_HOOK_EVENT";

/// The end of stderr that is kept.
const STDERR_BYTES: usize = 2 << 10;

/// Returns the program of a command.
pub(super) fn program(config: &HookConfig) -> Result<(PathBuf, PathBuf), HookConfigError> {
    let directory = match &config.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir()
            .map_err(|error| config.error("directory", format!("must be set: the current one is unknown: {error}")))?,
    };
    let Some(name) = config.command.first() else { return Err(config.error("command", "must not be empty")) };
    let path = std::env::var_os("PATH");
    let found = find_program(name.as_ref(), path.as_deref(), &directory);
    found.map(|program| (program, directory)).map_err(|error| config.error("command", error.to_string()))
}

/// Runs a command, and returns its output. No process of it runs when this returns.
pub(super) async fn run(
    config: &HookConfig,
    supervisor: &Supervisor,
    payload: &Payload,
    deadline: Instant,
) -> Result<Vec<u8>, FailedCall> {
    let (program, cwd) = program(config).map_err(CallError::from)?;
    let spawn = Spawn {
        program,
        args: config.command.iter().skip(1).map(OsString::from).collect(),
        env: environment(config, payload.event),
        cwd,
        stdin: Stdin::Pipe,
        output: Output::Stdout,
    };
    let timed_out = || CallError::TimedOut(config.timeout);
    let started = ProcessTree::spawn_until(supervisor, &spawn, None, tokio::time::sleep_until(deadline)).await;
    let (tree, pipes) = match started {
        Ok(started) => started,
        Err(teamster_process::SpawnError::Stopped) => return Err(timed_out().into()),
        Err(error) => return Err(CallError::Start(error.to_string()).into()),
    };
    let Pipes { stdin, stdout, stderr } = pipes;
    let mut stderr = TailReader::new(stderr, STDERR_BYTES);
    let ended = {
        let mut stdin = StdinWriter::new(stdin);
        stdin.push(payload.body.clone().into());
        // `read` in a shell needs the end of the line.
        stdin.push(b"\n".as_slice().into());
        stdin.close_when_written();
        let work = async {
            // A command need not read its input.
            let write = async { _ = stdin.flush().await };
            let exited = async {
                let exit = tree.exited().await;
                // A process in the background would keep the pipes open.
                tree.terminate(Duration::ZERO).await;
                exit
            };
            let (output, (), (), exit) =
                tokio::join!(read(stdout, &tree, payload.max_answer), write, drain(&mut stderr), exited);
            (output, exit)
        };
        tokio::time::timeout_at(deadline, work).await
    };
    tree.terminate(Duration::ZERO).await;
    let output = Some(stderr.text()).filter(|text| !text.is_empty());
    match ended {
        Err(_) => Err(FailedCall { error: timed_out(), output }),
        Ok((Err(error), _)) => Err(FailedCall { error, output }),
        Ok((Ok(answer), exit)) if exit.success() => Ok(answer),
        Ok((Ok(_), exit)) => Err(FailedCall { error: CallError::Exit(exit), output }),
    }
}

/// Reads the output. The tree of a command that prints too much is killed.
async fn read(
    mut stdout: tokio::net::unix::pipe::Receiver,
    tree: &ProcessTree,
    max: usize,
) -> Result<Vec<u8>, CallError> {
    let mut output = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    // An error of a pipe is its end.
    _ = (&mut stdout).take(limit).read_to_end(&mut output).await;
    if output.len() > max {
        tree.terminate(Duration::ZERO).await;
        return Err(CallError::TooLong(max));
    }
    Ok(output)
}

async fn drain(stderr: &mut TailReader) {
    while stderr.fill().await.is_ok_and(|count| count > 0) {
        while stderr.next_line().is_some() {}
    }
}

/// Returns the variables of the allow-list.
fn environment(config: &HookConfig, event: &str) -> BTreeMap<OsString, OsString> {
    let names = VARIABLES.into_iter().chain(config.env.iter().map(String::as_str));
    let mut env: BTreeMap<OsString, OsString> =
        names.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect();
    env.insert(EVENT_VARIABLE.into(), event.into());
    env
}
