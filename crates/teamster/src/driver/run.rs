//! Drives a run, from its place in the queue to its `done`.

use std::sync::Arc;

use teamster_agents::agent::Plan;
use teamster_agents::transcript::Cause;
use teamster_types::event::Warning;
use teamster_types::request::Limits;

use super::attempts::{self, Retry};
use super::budget::Budget;
use super::ended::Ended;
use super::event_sink::EventSink;
use super::host::Host;
use super::log;
use super::starting::wait_in_queue;
use crate::live::LiveRun;
use crate::permits::Ticket;
use crate::recording::redact::Redactor;
use crate::turns::handle::RunHandle;

/// A run to drive.
pub(crate) struct RunJob {
    pub(crate) plan: Plan,
    /// How to start the run again. `None` if it is not retried.
    pub(crate) retry: Option<Retry>,
    /// Warnings about the request, emitted first.
    pub(crate) warnings: Vec<Warning>,
    pub(crate) host: Host,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
    pub(crate) live: LiveRun,
}

/// Drives a run to its `done`. The run takes over the events that the consumer has not taken by then.
pub(crate) async fn drive(mut ticket: Ticket, job: RunJob, run: RunHandle) {
    let RunJob { plan, retry, warnings, host, redactor, limits, budget, live } = job;
    let mut sink = EventSink::new(&run, &limits, &host, budget);
    sink.set_redactor(redactor);
    let admitted = wait_in_queue(&mut ticket, &mut sink, &run).await;
    sink.start_clock();
    log::step("admitted");
    for warning in warnings {
        sink.emit(warning);
    }
    let ended = if admitted {
        attempts::run(plan, retry, &mut ticket, host, &limits, &mut sink, &run).await
    } else {
        Ended::by(Cause::Aborted)
    };
    sink.check_recording().await;
    live.note_left(&ended.left);
    sink.end(&ended);
}
