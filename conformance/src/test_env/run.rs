//! A running run.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use teamster::event::RequestId;
use teamster::{Control, Event, Run};
use teamster_testkit::provider::Provider;

use crate::output::print;
use crate::recording::Recording;
use crate::run_processes::RunProcesses;
use crate::{DEADLINE, TIMEOUT};

/// A run whose events are recorded.
#[derive(Debug)]
pub struct TestRun {
    provider: Arc<Provider>,
    run: Run,
    processes: RunProcesses,
    events: Vec<Event>,
    first_request: usize,
    /// The processes stay for the next turn.
    in_session: bool,
}

impl TestRun {
    pub(super) fn new(provider: Arc<Provider>, run: Run, processes: RunProcesses) -> Self {
        let first_request = provider.requests().len();
        Self { provider, run, processes, events: Vec::new(), first_request, in_session: false }
    }

    pub(super) fn of_session(provider: Arc<Provider>, run: Run, processes: RunProcesses) -> Self {
        Self { in_session: true, ..Self::new(provider, run, processes) }
    }

    /// Returns the handle that interrupts or aborts the run.
    pub fn control(&self) -> Control {
        self.run.control()
    }

    /// Returns the run's processes.
    pub fn processes(&self) -> RunProcesses {
        self.processes.clone()
    }

    /// Returns the events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Reads up to the first event that matches, and returns it.
    pub async fn until(&mut self, what: &str, matches: impl Fn(&Event) -> bool) -> Result<Event> {
        loop {
            let event = self.next().await.with_context(|| format!("waiting for {what}"))?;
            let Some(event) = event else { bail!("the run ended without {what}: {:?}", self.events.last()) };
            if matches(&event) {
                return Ok(event);
            }
        }
    }

    /// Reads to the end, and checks the promises of every run.
    pub async fn finish(mut self) -> Result<Recording> {
        while self.next().await?.is_some() {}
        let remaining = if self.in_session { Vec::new() } else { self.processes.list() };
        let requests = self.provider.requests().into_iter().skip(self.first_request).collect();
        let recording = Recording::check(self.events, requests)?;
        ensure!(remaining.is_empty(), "processes outlive their run: {remaining:?}");
        Ok(recording)
    }

    /// Drops the run, and returns its processes.
    pub fn abandon(self) -> RunProcesses {
        self.processes
    }

    async fn next(&mut self) -> Result<Option<Event>> {
        // The run has a deadline of its own. That it ends by then is a promise too.
        let event = tokio::time::timeout(DEADLINE + TIMEOUT, self.run.next()).await.context("the run does not end")?;
        if let Some(event) = &event {
            print(&serde_json::to_string(event)?);
            self.events.push(event.clone());
        }
        Ok(event)
    }
}

/// Returns the id of a permission request or a question.
pub fn request_id(event: &Event) -> Option<&RequestId> {
    match event {
        Event::PermissionRequest(request) => Some(&request.request_id),
        Event::Question(question) => Some(&question.request_id),
        _ => None,
    }
}
