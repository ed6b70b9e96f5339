//! Installs and updates the CLIs of agents by npm, in a supervised process tree: when the command ends, for any reason, no
//! process of npm remains.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use teamster_process::{
    Exit, FindError, Output, ProcessTree, Spawn, SpawnError, Stdin, Supervisor, TailReader, find_program,
};

use crate::printable::{Printable, printable};
use crate::signals::Signals;
use crate::vendor;

/// The time that npm has to remove incomplete files.
const GRACE: Duration = Duration::from_secs(5);

/// The time in which npm must report its prefix.
const PREFIX_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of bytes of standard error that are kept.
const MAX_STDERR: usize = 8 << 10;

/// Why a package was not installed.
#[derive(Debug, thiserror::Error)]
pub(super) enum NpmError {
    #[error("npm is not installed")]
    Missing(#[source] FindError),
    #[error("npm is not installed")]
    NotInPath,
    #[error("cannot start npm")]
    Start(#[from] SpawnError),
    #[error("cannot start npm")]
    System(#[from] io::Error),
    #[error("npm {exit}")]
    Failed { exit: Exit, stderr: String },
    #[error("interrupted")]
    Interrupted,
}

impl NpmError {
    /// Returns how to correct the error.
    pub(super) fn hint(&self) -> Option<Printable> {
        match self {
            Self::Missing(_) | Self::NotInPath => {
                Some(printable!("install Node.js, which includes npm: {}", vendor::NODE))
            }
            Self::Failed { stderr, .. } if stderr.contains("EACCES") => {
                Some("npm may not write there; to install for this user: npm config set prefix ~/.local".into())
            }
            _ => None,
        }
    }
}

/// Returns the prefix of global packages, if npm reports it in time.
pub(super) async fn prefix() -> Option<String> {
    let mut npm = tokio::process::Command::new("npm");
    npm.args(["prefix", "-g"]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PREFIX_TIMEOUT, npm.output()).await.ok()?.ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.trim().to_owned()).filter(|prefix| !prefix.is_empty())
}

/// Installs the newest version of a package.
pub(super) async fn install(package: &str, signals: &mut Signals) -> Result<(), NpmError> {
    let cwd = std::env::current_dir()?;
    let path = std::env::var_os("PATH");
    let program = find_program("npm".as_ref(), path.as_deref(), &cwd).map_err(NpmError::Missing)?;
    let args = ["install", "-g", package].map(Into::into).into();
    let env = std::env::vars_os().collect();
    let spawn = Spawn { program, args, env, cwd, stdin: Stdin::Null, output: Output::Stdout };
    let supervisor = Supervisor::new();
    let (tree, pipes) = ProcessTree::spawn(&supervisor, &spawn, None).await?;
    let mut stdout = TailReader::new(pipes.stdout, 0);
    let mut stderr = TailReader::new(pipes.stderr, MAX_STDERR);
    let end = async {
        tokio::select! {
            exit = tree.exited() => {
                // A process in the background would keep the pipes open.
                tree.terminate(Duration::ZERO).await;
                Some(exit)
            }
            _ = signals.next() => {
                tokio::select! {
                    _ = tree.terminate(GRACE) => {}
                    _ = signals.next() => {
                        tree.terminate(Duration::ZERO).await;
                    }
                }
                None
            }
        }
    };
    let (exit, (), ()) = tokio::join!(end, drain(&mut stdout), drain(&mut stderr));
    match exit {
        None => Err(NpmError::Interrupted),
        Some(exit) if exit.success() => Ok(()),
        Some(exit) => Err(NpmError::Failed { exit, stderr: stderr.text() }),
    }
}

/// Reads a stream to its end.
async fn drain(stream: &mut TailReader) {
    while stream.fill().await.is_ok_and(|count| count > 0) {
        while stream.next_line().is_some() {}
    }
}
