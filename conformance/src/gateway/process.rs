//! The process of a gateway.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::TIMEOUT;
use crate::run_processes::POLL_INTERVAL;

/// The number of lines of a log that an error shows.
const SHOWN_LINES: usize = 40;

/// A running process. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// The first line of its output.
    pub(super) url: String,
}

impl Process {
    /// Starts a gateway, and waits for its URL. Its diagnostics are appended to a file.
    pub(super) async fn start(mut command: Command, log: &Path) -> Result<Self> {
        let diagnostics = OpenOptions::new().create(true).append(true).open(log).context("cannot create a log")?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(diagnostics);
        let mut process = Self { child: command.spawn().context("cannot start the gateway")?, url: String::new() };
        let stdout = process.child.stdout.take().context("the gateway has no output")?;
        let first = tokio::task::spawn_blocking(move || {
            let mut lines = BufReader::new(stdout).lines();
            let first = lines.next();
            // The rest is read so that the gateway can write it.
            std::thread::spawn(move || lines.for_each(drop));
            first
        });
        let first = tokio::time::timeout(TIMEOUT, first).await.context("the gateway prints nothing")??;
        let Some(line) = first else { bail!("the gateway does not start:\n{}", end_of(log)) };
        process.url = line?;
        ensure!(process.url.starts_with("http://127.0.0.1:"), "the first line is no URL: {:?}", process.url);
        Ok(process)
    }

    /// Kills it with SIGKILL, as an out-of-memory killer does.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("cannot kill the gateway")?;
        self.child.wait().context("cannot wait for the gateway")?;
        Ok(())
    }

    /// Asks it to stop, and waits for its exit.
    pub(super) async fn stop(&mut self) -> Result<ExitStatus> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("cannot stop the gateway")?;
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(started.elapsed() < TIMEOUT, "the gateway does not stop");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if it has ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns the last lines of a log.
pub(super) fn end_of(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n")
}

/// Returns the command `teamster` that was built together with the running program, in the parent directory of tests and
/// examples.
///
/// # Errors
/// If it was not built.
pub fn teamster() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let path = program.ancestors().nth(2).context("the directory of the build")?.join("teamster");
    ensure!(path.is_file(), "{} does not exist: run `cargo build -p teamster-cli`", path.display());
    Ok(path)
}
