//! A run under way.

use anyhow::{Context, Result, bail, ensure};
use teamster::{Control, Event, Run};

use crate::print;
use crate::recording::Recording;
use crate::test_env::TestEnv;
use crate::trace::Trace;
use crate::{BOUND, DEADLINE};

/// A run that is watched.
#[derive(Debug)]
pub struct Live<'lab> {
    lab: &'lab TestEnv,
    run: Run,
    trace: Trace,
    events: Vec<Event>,
    first_request: usize,
    /// Its processes go on to another turn.
    in_session: bool,
}

impl<'lab> Live<'lab> {
    pub(crate) fn new(lab: &'lab TestEnv, run: Run, trace: Trace) -> Self {
        let first_request = lab.provider().requests().len();
        Self { lab, run, trace, events: Vec::new(), first_request, in_session: false }
    }

    pub(crate) fn of_session(lab: &'lab TestEnv, run: Run, trace: Trace) -> Self {
        Self { in_session: true, ..Self::new(lab, run, trace) }
    }

    /// The reins.
    pub fn control(&self) -> Control {
        self.run.control()
    }

    /// The run's processes.
    pub fn trace(&self) -> Trace {
        self.trace.clone()
    }

    /// What it has said so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Reads up to the first event that is as wanted, and returns it.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
        loop {
            let event = self.next().await.with_context(|| format!("waiting for {what}"))?;
            let Some(event) = event else { bail!("the run ended without {what}: {:?}", self.events.last()) };
            if wanted(&event) {
                return Ok(event);
            }
        }
    }

    /// Reads to the end and checks everything that is promised of every run.
    pub async fn finish(mut self) -> Result<Recording> {
        while self.next().await?.is_some() {}
        let left = if self.in_session { Vec::new() } else { self.trace.processes() };
        let requests = self.lab.requests_from(self.first_request);
        let recording = Recording::check(self.events, requests)?;
        ensure!(left.is_empty(), "processes outlive their run: {left:?}");
        Ok(recording)
    }

    /// Drops the run, whatever it is doing.
    pub fn abandon(self) -> Trace {
        self.trace
    }

    async fn next(&mut self) -> Result<Option<Event>> {
        // The run has a deadline of its own; that it keeps it is a promise too.
        let event = tokio::time::timeout(DEADLINE + BOUND, self.run.next()).await.context("the run goes on and on")?;
        if let Some(event) = &event {
            print(&serde_json::to_string(event)?);
            self.events.push(event.clone());
        }
        Ok(event)
    }
}
