//! Finds the processes of a run by a variable in their environment. Child processes inherit it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The name of the variable.
pub(crate) const VARIABLE: &str = "TEAMSTER_TEST_RUN";

/// The interval at which a condition without a notification is checked.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The processes of one run.
#[derive(Clone, Debug)]
pub struct RunProcesses {
    value: String,
}

/// A living process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// The arguments, joined by spaces.
    pub command: String,
}

impl RunProcesses {
    /// `value` is the value of the variable, unique to the run.
    pub(crate) fn new(value: String) -> Self {
        Self { value }
    }

    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    /// Returns the processes that are alive now.
    pub fn list(&self) -> Vec<Process> {
        let entry = format!("{VARIABLE}={}", self.value);
        let belongs = |folder: &Path| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
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

    /// Waits for a process with these words in its arguments. A shell that is about to run them matches too.
    pub async fn wait_for(&self, words: &str, timeout: Duration) -> Result<Process> {
        self.wait_until(words, timeout, |process| process.command.contains(words)).await
    }

    /// Waits for a process with exactly these arguments.
    pub async fn wait_for_command(&self, command: &str, timeout: Duration) -> Result<Process> {
        self.wait_until(command, timeout, |process| process.command == command).await
    }

    /// Waits until no process of the run is left.
    pub async fn wait_until_gone(&self, timeout: Duration) -> Result<()> {
        let started = Instant::now();
        loop {
            let remaining = self.list();
            if remaining.is_empty() {
                return Ok(());
            }
            if started.elapsed() > timeout {
                bail!("after {timeout:?} there are still {remaining:?}");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn wait_until(&self, what: &str, timeout: Duration, matches: impl Fn(&Process) -> bool) -> Result<Process> {
        let started = Instant::now();
        loop {
            let processes = self.list();
            if let Some(found) = processes.iter().find(|process| matches(process)) {
                return Ok(found.clone());
            }
            if started.elapsed() > timeout {
                bail!("no process with `{what}` within {timeout:?}, only {processes:?}");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
