//! An open session.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use teamster::Session;
use teamster::request::Prompt;
use teamster_testkit::provider::Provider;

use super::run::TestRun;
use crate::TIMEOUT;
use crate::recording::Recording;
use crate::run_processes::RunProcesses;

/// A session whose turns are checked like runs.
#[derive(Debug)]
pub struct TestSession {
    provider: Arc<Provider>,
    session: Session,
    processes: RunProcesses,
}

impl TestSession {
    pub(super) fn new(provider: Arc<Provider>, session: Session, processes: RunProcesses) -> Self {
        Self { provider, session, processes }
    }

    /// Returns the session itself.
    pub fn handle(&self) -> &Session {
        &self.session
    }

    /// Returns the session's processes.
    pub fn processes(&self) -> RunProcesses {
        self.processes.clone()
    }

    /// Sends a prompt, and returns its turn.
    pub fn send(&self, prompt: impl Into<Prompt>) -> Result<TestRun> {
        let run = self.session.send(prompt)?;
        Ok(TestRun::of_session(Arc::clone(&self.provider), run, self.processes.clone()))
    }

    /// Sends a prompt, and waits for the end of its turn.
    pub async fn run_turn(&self, prompt: impl Into<Prompt>) -> Result<Recording> {
        self.send(prompt)?.finish().await
    }

    /// Closes the session, and checks that no process is left.
    pub async fn close(self) -> Result<()> {
        tokio::time::timeout(TIMEOUT, self.session.close()).await.context("the session does not end")?;
        let remaining = self.processes.list();
        ensure!(remaining.is_empty(), "processes outlive their session: {remaining:?}");
        Ok(())
    }

    /// Drops the session, and returns its processes.
    pub fn abandon(self) -> RunProcesses {
        self.processes
    }
}
