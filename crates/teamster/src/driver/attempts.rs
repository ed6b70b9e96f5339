//! A run as one attempt, or as several: what failed in passing is started again, in the same stream.
//!
//! Invariant: no attempt begins after the caller asked to end the run, nor past the deadline, which counts for all attempts
//! and the waits between them together.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backon::ExponentialBackoff;
use teamster_agents::agent::{Agent, Plan};
use teamster_agents::launch::Launch;
use teamster_agents::transcript::Cause;
use teamster_types::event::{ErrorCode, Failure, LeftProcess};
use teamster_types::request::{Limits, RunRequest};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::budget::used_up;
use super::process::{self, Ended};
use super::retry::{self, Case, Next};
use super::{Host, Story, prepare, start};
use crate::permits::{Permits, Ticket};
use crate::run::Outlet;
use crate::runtime::RunError;

/// What a run needs to be started again.
pub(crate) struct Again {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) request: RunRequest,
    /// Lets runs in.
    pub(crate) permits: Permits,
}

/// The attempts of one run.
struct Attempts<'a> {
    again: &'a Again,
    /// Those of the whole run.
    limits: &'a Limits,
    deadline: Option<Instant>,
    delays: ExponentialBackoff,
    begun: u32,
    /// Processes that attempts before the last one left.
    left: Vec<LeftProcess>,
}

/// Goes through the attempts of a run, and tells how the last one ended.
pub(super) async fn run(
    launch: Launch,
    again: Option<Again>,
    ticket: &mut Ticket,
    host: Host,
    limits: &Limits,
    story: &mut Story,
    outlet: &Outlet,
) -> Ended {
    let Some(again) = &again else { return attempt(launch, host, limits, story, outlet).await };
    let mut attempts = Attempts {
        again,
        limits,
        // One that lies beyond the end of time is none.
        deadline: story.started.checked_add(limits.deadline).filter(|_| !limits.deadline.is_zero()),
        delays: retry::delays(&again.request.retries),
        begun: 0,
        left: Vec::new(),
    };
    let mut ended = Box::pin(attempts.all(launch, ticket, host, story, outlet)).await;
    attempts.left.retain(|process| !ended.left.contains(process));
    ended.left.splice(..0, attempts.left);
    ended
}

impl Attempts<'_> {
    /// Makes attempts until one of them is the last, and returns how that one ended.
    async fn all(
        &mut self,
        mut launch: Launch,
        ticket: &mut Ticket,
        host: Host,
        story: &mut Story,
        outlet: &Outlet,
    ) -> Ended {
        loop {
            let mut ended = self.one(launch, host.clone(), story, outlet).await;
            let Some(failure) = story.failure(&ended).filter(|_| !outlet.is_ended()) else { return ended };
            let Some(delay) = self.delay(&failure, story) else { return ended };
            self.left.append(&mut ended.left);
            story.begin_again();
            story.say(retry::retrying(&failure, self.begun, self.again.request.retries.max, delay).into());
            if waiting(self.wait(delay, ticket), story, outlet).await.is_none() {
                return Ended::by(Cause::Aborted);
            }
            match plan(self.again, story.transcript.earlier_cost_usd()) {
                Ok(plan) => {
                    launch = plan.launch;
                    story.listen_to(plan.protocol);
                }
                Err(failure) => return Ended::by(Cause::Failed(failure)),
            }
        }
    }

    /// One more attempt, as long as there is time.
    async fn one(&mut self, launch: Launch, host: Host, story: &mut Story, outlet: &Outlet) -> Ended {
        let mut limits = self.limits.clone();
        match self.left() {
            // As a limit, zero would be none.
            Some(Duration::ZERO) => return Ended::by(Cause::Failed(self.too_late())),
            left => limits.deadline = left.unwrap_or_default(),
        }
        self.begun += 1;
        tracing::Span::current().record("attempt", self.begun);
        let mut ended = attempt(launch, host, &limits, story, outlet).await;
        // The attempt knows only of its own share.
        if let Some(Cause::Failed(failure)) = &mut ended.cause
            && failure.code == ErrorCode::DeadlineExceeded
        {
            *failure = self.too_late();
        }
        ended
    }

    /// How long to wait for the next attempt; `None` if there is none.
    fn delay(&mut self, failure: &Failure, story: &mut Story) -> Option<Duration> {
        if story.transcript.is_past_retraction() {
            tracing::debug!("too much was said to be taken back: the run is not started again");
            return None;
        }
        let case = Case {
            failure,
            tools: story.transcript.has_tools(),
            prompt: self.again.request.conversation.continues_session() && story.heard,
            limit: story.transcript.limit().and_then(retry::lasts),
            left: self.left(),
        };
        match retry::decide(&case, self.again.request.retries.policy, &mut self.delays) {
            Next::Wait(delay) => Some(delay),
            Next::Refuse(refusal) => {
                story.say(retry::not_retried(failure, &refusal).into());
                None
            }
            Next::End => None,
        }
    }

    /// Waits, and then for the run's place, but not beyond the deadline.
    async fn wait(&self, delay: Duration, ticket: &mut Ticket) {
        // Others may run meanwhile.
        *ticket = Ticket::default();
        sleep(delay).await;
        let key = self.again.request.queue_key.as_deref();
        *ticket = self.again.permits.enqueue_always(key, self.again.agent.name(), true);
        match self.deadline {
            Some(deadline) => _ = timeout_at(deadline, ticket.granted()).await,
            None => ticket.granted().await,
        }
    }

    fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    fn too_late(&self) -> Failure {
        let seconds = self.limits.deadline.as_secs_f64();
        let several = if self.begun > 1 { format!(", in {} attempts", self.begun) } else { String::new() };
        let text = format!("the run took longer than its deadline of {seconds} s{several}");
        Failure::new(ErrorCode::DeadlineExceeded, text)
    }
}

/// Lives through one process, and hears the agent's last word.
pub(super) async fn attempt(launch: Launch, host: Host, limits: &Limits, story: &mut Story, outlet: &Outlet) -> Ended {
    let started = Instant::now();
    let recorder = host.recorder(&story.redactor);
    let starting = async |stop: &CancellationToken| prepare::start(launch, host, recorder, limits, stop).await;
    let mut ended = match start(starting, limits, outlet).await {
        Ok(mut live) => {
            if let Some(warning) = live.warning.take() {
                story.say(warning.into());
            }
            process::run(live, story, limits, outlet, started).await
        }
        Err(cause) => return Ended::by(cause),
    };
    story.last_word(&mut ended);
    ended
}

/// Waits for something while the consumer gets what it has not got yet; `None` if the caller ends the run meanwhile.
async fn waiting<T>(what: impl Future<Output = T>, story: &mut Story, outlet: &Outlet) -> Option<T> {
    let mut what = pin!(what);
    loop {
        tokio::select! {
            biased;
            () = outlet.aborted.cancelled() => return None,
            () = outlet.interrupted.cancelled() => return None,
            output = &mut what => return Some(output),
            () = story.outbox.deliver(), if !story.outbox.is_empty() => {}
        }
    }
}

/// The same plan once more, with what the attempts before it have left of the budget. It was possible before, but the agent is
/// asked anew, and may be somebody else's code.
fn plan(again: &Again, spent_usd: f64) -> Result<Plan, Failure> {
    let mut request = again.request.clone();
    for budget in [&mut request.max_budget_usd, &mut request.max_session_budget_usd].into_iter().flatten() {
        if *budget <= spent_usd {
            return Err(used_up(format!("the run has cost the {budget} US dollars it may; it was not started again")));
        }
        // A cost below zero must not add to the budget.
        *budget -= spent_usd.max(0.0);
    }
    crate::runtime::plan(&*again.agent, &request).map_err(|error| not_planned(&error))
}

/// What could be planned when the caller asked for it cannot any more.
pub(super) fn not_planned(error: &RunError) -> Failure {
    let code = match error {
        RunError::AgentPanicked { .. } => ErrorCode::Protocol,
        _ => ErrorCode::InvalidRequest,
    };
    Failure::new(code, error.to_string())
}
