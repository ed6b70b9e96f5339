//! Drives a run as one attempt, or as several: a run whose failure is temporary is started again, in the same stream.
//!
//! Invariant: no attempt starts after the caller stopped the run, or after the deadline. The deadline includes all attempts
//! and the waits between them.

use std::sync::Arc;
use std::time::Duration;

use backon::ExponentialBackoff;
use teamster_agents::agent::{Agent, Plan};
use teamster_agents::transcript::Cause;
use teamster_types::event::{ErrorCode, Failure, LeftProcess};
use teamster_types::request::{Limits, RunRequest};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::budget::used_up;
use super::ended::Ended;
use super::event_sink::EventSink;
use super::failures::rejected_plan;
use super::host::Host;
use super::process::AgentProcess;
use super::retry::{self, Decision, FailedAttempt};
use super::starting::{deliver_while, start_within};
use super::turn;
use crate::permits::{Permits, Ticket};
use crate::runtime::plan_run;
use crate::turns::handle::RunHandle;

/// What it takes to start a run again.
pub(crate) struct Retry {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) request: RunRequest,
    pub(crate) permits: Permits,
}

/// The attempts of a run.
struct Attempts<'a> {
    retry: &'a Retry,
    /// The limits of the whole run.
    limits: &'a Limits,
    deadline: Option<Instant>,
    delays: ExponentialBackoff,
    started: u32,
    /// Remaining processes of the earlier attempts.
    left: Vec<LeftProcess>,
}

/// Drives the attempts of a run, and returns how the last one ended.
pub(super) async fn run(
    plan: Plan,
    retry: Option<Retry>,
    ticket: &mut Ticket,
    host: Host,
    limits: &Limits,
    sink: &mut EventSink,
    run: &RunHandle,
) -> Ended {
    let Some(retry) = &retry else { return attempt(plan, host, limits, sink, run).await };
    let mut attempts = Attempts {
        retry,
        limits,
        // A deadline that cannot be represented as a time is no deadline.
        deadline: sink.started().checked_add(limits.deadline).filter(|_| !limits.deadline.is_zero()),
        delays: retry::delays(&retry.request.retries),
        started: 0,
        left: Vec::new(),
    };
    let mut ended = Box::pin(attempts.drive(plan, ticket, host, sink, run)).await;
    attempts.left.retain(|process| !ended.left.contains(process));
    ended.left.splice(..0, attempts.left);
    ended
}

impl Attempts<'_> {
    /// Makes attempts until one is the last, and returns how that one ended.
    async fn drive(
        &mut self,
        mut plan: Plan,
        ticket: &mut Ticket,
        host: Host,
        sink: &mut EventSink,
        run: &RunHandle,
    ) -> Ended {
        loop {
            let mut ended = self.attempt(plan, host.clone(), sink, run).await;
            let Some(failure) = sink.failure(&ended).filter(|_| !run.is_stopped()) else { return ended };
            let Some(delay) = self.delay(&failure, ended.has_output, sink) else { return ended };
            self.left.append(&mut ended.left);
            sink.restart();
            sink.emit(retry::retrying(&failure, self.started, self.retry.request.retries.max, delay));
            if deliver_while(self.wait(delay, ticket), sink, run).await.is_none() {
                return Ended::by(Cause::Aborted);
            }
            plan = match plan_again(self.retry, sink.transcript.earlier_cost_usd()) {
                Ok(plan) => plan,
                Err(failure) => return Ended::by(Cause::Failed(failure)),
            };
        }
    }

    /// Makes an attempt, if the deadline has not passed.
    async fn attempt(&mut self, plan: Plan, host: Host, sink: &mut EventSink, run: &RunHandle) -> Ended {
        let mut limits = self.limits.clone();
        match self.remaining() {
            // As a limit, zero would mean no deadline.
            Some(Duration::ZERO) => return Ended::by(Cause::Failed(self.deadline_exceeded())),
            remaining => limits.deadline = remaining.unwrap_or_default(),
        }
        self.started += 1;
        tracing::Span::current().record("attempt", self.started);
        let mut ended = attempt(plan, host, &limits, sink, run).await;
        // The attempt reports the remaining time as its deadline, instead of the deadline of the run.
        if let Some(Cause::Failed(failure)) = &mut ended.cause
            && failure.code == ErrorCode::DeadlineExceeded
        {
            *failure = self.deadline_exceeded();
        }
        ended
    }

    /// Returns the delay before the next attempt. `None` if there is no next attempt.
    fn delay(&mut self, failure: &Failure, has_output: bool, sink: &mut EventSink) -> Option<Duration> {
        if sink.transcript.is_past_retraction() {
            tracing::debug!("the run is not retried, because too many events would have to be retracted");
            return None;
        }
        let failed = FailedAttempt {
            failure,
            called_tools: sink.transcript.has_tools(),
            may_have_stored_prompt: self.retry.request.conversation.continues_session() && has_output,
            rate_limited_for: sink.transcript.limit().and_then(retry::remaining),
            until_deadline: self.remaining(),
        };
        match retry::decide(&failed, self.retry.request.retries.policy, &mut self.delays) {
            Decision::Retry(delay) => Some(delay),
            Decision::Refuse(refusal) => {
                sink.emit(retry::not_retried(failure, &refusal));
                None
            }
            Decision::End => None,
        }
    }

    /// Waits for the delay and then for the run's place in the queue, until the deadline at most.
    async fn wait(&self, delay: Duration, ticket: &mut Ticket) {
        // Other runs can have the place meanwhile.
        *ticket = Ticket::default();
        sleep(delay).await;
        let key = self.retry.request.queue_key.as_deref();
        *ticket = self.retry.permits.enqueue_always(key, self.retry.agent.name(), true);
        match self.deadline {
            Some(deadline) => _ = timeout_at(deadline, ticket.granted()).await,
            None => ticket.granted().await,
        }
    }

    fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    fn deadline_exceeded(&self) -> Failure {
        let seconds = self.limits.deadline.as_secs_f64();
        let several = if self.started > 1 { format!(", in {} attempts", self.started) } else { String::new() };
        let text = format!("the run took longer than its deadline of {seconds} s{several}");
        Failure::new(ErrorCode::DeadlineExceeded, text)
    }
}

/// Starts a process for a run, drives it to its exit, and returns how it ended.
pub(super) async fn attempt(plan: Plan, host: Host, limits: &Limits, sink: &mut EventSink, run: &RunHandle) -> Ended {
    let started = Instant::now();
    let redactor = Arc::clone(sink.redactor());
    sink.queue.flush();
    let start = async |cancel: &CancellationToken| AgentProcess::start(plan, host, redactor, limits, cancel).await;
    let mut process = match start_within(start, limits, run).await {
        Ok(process) => process,
        Err(cause) => return Ended::by(cause),
    };
    if let Some(warning) = process.take_warning() {
        sink.emit(warning);
    }
    let exit = turn::drive_to_exit(&mut process, sink, limits, run, started).await;
    process.end(exit, sink, limits).await.report(sink)
}

/// Plans the run again, with the rest of its budget. The plan can fail now, because the agent's code is called again.
fn plan_again(retry: &Retry, spent_usd: f64) -> Result<Plan, Failure> {
    let mut request = retry.request.clone();
    for budget in [&mut request.max_budget_usd, &mut request.max_session_budget_usd].into_iter().flatten() {
        if *budget <= spent_usd {
            return Err(used_up(format!("the run is not retried: it has cost its budget of {budget} US dollars")));
        }
        // A negative cost must not increase the budget.
        *budget -= spent_usd.max(0.0);
    }
    plan_run(&*retry.agent, &request).map_err(|error| rejected_plan(&error))
}
