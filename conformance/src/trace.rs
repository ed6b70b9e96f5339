//! Finds the processes of a run by a variable in their environment, which children inherit and nobody changes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The variable.
pub(crate) const MARKER: &str = "TEAMSTER_LAB";

/// How often the process table is read while something is waited for.
const LOOK: Duration = Duration::from_millis(10);

/// The marker of one run.
#[derive(Clone, Debug)]
pub struct Trace {
    name: String,
}

/// A process that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its arguments, joined by spaces.
    pub command: String,
}

impl Trace {
    pub(crate) fn new(name: String) -> Self {
        Self { name }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The processes of the run that live now.
    pub fn processes(&self) -> Vec<Process> {
        let marker = format!("{MARKER}={}", self.name);
        let belongs = |folder: &Path| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
        pids.filter(|(_, folder)| belongs(folder))
            .map(|(pid, folder)| {
                let command = fs::read(folder.join("cmdline")).unwrap_or_default();
                let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
                Process { pid, command }
            })
            .collect()
    }

    /// Waits until a process of the run has these words in its arguments. The shell that is to run them has them too.
    pub async fn wait_for(&self, words: &str, bound: Duration) -> Result<Process> {
        self.wait_until(words, bound, |process| process.command.contains(words)).await
    }

    /// Waits until a command runs: whatever stands before it in its shell is over then.
    pub async fn wait_for_command(&self, command: &str, bound: Duration) -> Result<Process> {
        self.wait_until(command, bound, |process| process.command == command).await
    }

    /// Waits until nothing of the run is left.
    pub async fn wait_until_gone(&self, bound: Duration) -> Result<()> {
        let began = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return Ok(());
            }
            if began.elapsed() > bound {
                bail!("still there after {bound:?}: {left:?}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn wait_until(&self, what: &str, bound: Duration, wanted: impl Fn(&Process) -> bool) -> Result<Process> {
        let began = Instant::now();
        loop {
            let processes = self.processes();
            if let Some(found) = processes.iter().find(|process| wanted(process)) {
                return Ok(found.clone());
            }
            if began.elapsed() > bound {
                bail!("no process with `{what}` in {bound:?}, only {processes:?}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
