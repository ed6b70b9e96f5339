//! One attempt at a turn: it drives the agent's run, and writes what happens to the log.

use std::time::Duration;

use teamster::event::{ErrorCode, Event, MessageId, RateLimit, RateLimitStatus, RunResult};
use teamster::{Run, StampedEvent};
use teamster_store::{Effects, NewDelivery, NewEvent, Timestamp};
use tokio::time::{Instant, sleep_until, timeout};

use super::context::{TurnContext, TurnError};
use super::failures::{not_sent, with_error};
use super::open_requests::OpenRequests;
use super::opening::{Continuation, Opened};
use super::steered::{SentMessage, Steering};
use crate::channels::{LiveAnswer, deliveries};
use crate::config::TurnSettings;
use crate::engine::log_writer::LogBuffer;
use crate::engine::running::TurnCommand;
use crate::engine::sessions::OpenSession;
use crate::event::GatewayEvent;
use crate::failpoints::failpoint;
use crate::hooks::HookEvent;
use crate::telemetry::spans::ToolSpans;

/// The code of a turn that has more events than the limit.
const EVENT_LIMIT: &str = "EVENT_LIMIT";

/// The code of a turn whose permission request was not answered in time.
const PERMISSION_TIMEOUT: &str = "PERMISSION_TIMEOUT";

/// The text of the failure of such a turn.
const UNANSWERED: &str = "The agent's request was not answered in time, so the turn was stopped. Retry the message when a \
                          person can answer.";

/// Why the gateway has stopped a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It has too many events.
    EventLimit,
    /// A request was not answered in time. The agent could repeat it, each time for as long.
    Unanswered,
}

/// The time limit for the end of a discarded agent. Only a process that cannot be killed takes that long.
const DISCARD_LIMIT: Duration = Duration::from_secs(10);

/// An attempt that runs.
pub(super) struct Attempt<'a> {
    pub(super) context: &'a mut TurnContext,
    pub(super) agent: String,
    /// `None` if the agent could not be started, or if the session is kept elsewhere.
    pub(super) open: Option<OpenSession>,
    pub(super) run: Option<Run>,
    /// The result of an agent that could not be started.
    refused: Option<Box<RunResult>>,
    pub(super) number: u32,
    /// The session is one of an earlier turn or attempt.
    pub(super) resumed: bool,
    pub(super) buffer: LogBuffer,
    /// Deliveries for the next append.
    pub(super) deliveries: Vec<NewDelivery>,
    pub(super) requests: OpenRequests,
    pub(super) steering: Steering,
    tools: ToolSpans,
    /// The display in the chat.
    pub(super) live: Option<LiveAnswer>,
    /// Before this time, the chat's service may still apply an edit of the display.
    pub(super) late_edit_until: Option<Timestamp>,
    pub(super) limited_until: Option<Timestamp>,
    pub(super) abort_requested: bool,
    /// Why the gateway has stopped the run.
    pub(super) stopped: Option<Stopped>,
    /// Messages whose text is in the log, for the case that another attempt replaces them.
    pub(super) streamed: Vec<MessageId>,
}

/// The end of an attempt.
pub(super) enum Outcome {
    /// The result of the run.
    Result(Box<RunResult>),
    /// The gateway shuts down.
    Shutdown,
}

/// What an attempt waits for.
enum Input {
    Shutdown,
    Command(TurnCommand),
    /// Events are in the list.
    Events(Vec<StampedEvent>),
    Flush,
    CheckRequests,
    Sent(SentMessage),
}

impl<'a> Attempt<'a> {
    /// Counts the attempt, opens the session and sends the prompt.
    pub(super) async fn start(
        context: &'a mut TurnContext,
        settings: TurnSettings,
        continued: Option<Continuation>,
    ) -> Result<Self, TurnError> {
        let agent = settings.agent.clone();
        let number = context.start_attempt(&agent).await?;
        failpoint!("attempt.counted");
        let buffer = LogBuffer::new(context.claim.turn.id, context.shared().config.timing.batch);
        let opened = context.open(settings, continued.as_ref()).await?;
        let mut attempt = Self {
            context,
            agent,
            open: None,
            run: None,
            refused: None,
            number,
            resumed: false,
            buffer,
            deliveries: Vec::new(),
            requests: OpenRequests::default(),
            steering: Steering::default(),
            tools: ToolSpans::default(),
            live: None,
            late_edit_until: None,
            limited_until: None,
            abort_requested: false,
            stopped: None,
            streamed: Vec::new(),
        };
        match opened {
            Ok(Opened { open, prompt, resumed, loss }) => {
                attempt.resumed = resumed;
                if let Some(reason) = loss {
                    attempt.report_loss(reason)?;
                }
                failpoint!("session.opened");
                open.tools.begin_turn(attempt.context.tool_turn(&open.settings.directory));
                match open.session.send(prompt) {
                    Ok(run) => {
                        failpoint!("prompt.sent");
                        attempt.live = LiveAnswer::start(&attempt.context.gateway, &attempt.context.recipient());
                        attempt.run = Some(run);
                    }
                    Err(error) => attempt.refused = Some(Box::new(not_sent(error))),
                }
                attempt.open = Some(open);
            }
            Err(result) => attempt.refused = Some(result),
        }
        Ok(attempt)
    }

    /// Drives the run to its end.
    ///
    /// # Errors
    /// This worker cannot record the end.
    pub(super) async fn drive(&mut self) -> Result<Outcome, TurnError> {
        if let Some(result) = self.refused.take() {
            return Ok(Outcome::Result(result));
        }
        loop {
            match self.next_input().await {
                Input::Shutdown => return Ok(Outcome::Shutdown),
                Input::Command(command) => self.obey(command).await?,
                Input::Flush => self.flush().await?,
                Input::CheckRequests => self.apply_answers().await?,
                Input::Sent(sent) => {
                    self.record_sent(sent).await?;
                    self.steer_next().await?;
                }
                Input::Events(events) => {
                    let result = self.take_events(events).await?;
                    if result.as_ref().is_some_and(is_of_lost_lease) {
                        return Err(TurnError::LeaseLost);
                    }
                    if let Some(result) = result {
                        return self.end_of_run(result).await;
                    }
                }
            }
        }
    }

    async fn next_input(&mut self) -> Input {
        let due = self.buffer.due();
        let check = self.requests.next_check();
        let at = |time: Option<Instant>| sleep_until(time.unwrap_or_else(Instant::now));
        let mut events = Vec::new();
        let Self { run: Some(run), context, steering, .. } = self else { return Input::Shutdown };
        tokio::select! {
            biased;
            () = context.shutdown_expired.cancelled() => Input::Shutdown,
            Some(command) = context.commands.recv() => Input::Command(command),
            () = at(due), if due.is_some() => Input::Flush,
            () = at(check), if check.is_some() => Input::CheckRequests,
            // A person may answer after a long time. An answer that is stored already is applied before.
            () = context.gateway.stopping().cancelled(), if check.is_some() => Input::Shutdown,
            Some(sent) = steering.next() => Input::Sent(sent),
            _ = run.next_batch(&mut events) => Input::Events(events),
        }
    }

    async fn obey(&mut self, command: TurnCommand) -> Result<(), TurnError> {
        match command {
            TurnCommand::Abort => {
                self.abort_requested = true;
                if let Some(run) = &self.run {
                    run.control().interrupt();
                }
            }
            TurnCommand::Answered(_) => self.apply_answers().await?,
            TurnCommand::Steer(turn) => {
                self.steering.waiting.push_back(turn);
                self.steer_next().await?;
            }
        }
        Ok(())
    }

    /// Takes a batch of events. Returns the result if the run has ended.
    async fn take_events(&mut self, events: Vec<StampedEvent>) -> Result<Option<RunResult>, TurnError> {
        for StampedEvent { event, time, .. } in events {
            let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let at = Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
            match event {
                Event::Done(done) => return Ok(Some(done.result)),
                // The result has the error. It is in the log only if no other attempt follows.
                Event::Error(_) | Event::Queued(_) => {}
                Event::PermissionRequest(_) | Event::Question(_) => self.request_permission(event, at).await?,
                Event::PermissionAnswered(answered) => self.permission_answered(*answered, at).await?,
                other => self.note(other, at)?,
            }
        }
        Ok(None)
    }

    fn note(&mut self, event: Event, at: Timestamp) -> Result<(), TurnError> {
        self.tools.note(&event);
        if let Some(live) = &mut self.live
            && live.push(&event)
        {
            self.deliveries.extend(deliveries::progress(&self.context.recipient())?);
        }
        match &event {
            Event::RateLimit(limit) => self.limited_until = end_of_limit(limit).or(self.limited_until),
            Event::Text(delta) if self.streamed.last() != Some(&delta.message_id) => {
                self.streamed.push(delta.message_id.clone());
            }
            Event::Retract(retract) => self.streamed.retain(|id| *id != retract.message_id),
            Event::ToolUse(tool) => self.context.shared().hooks.notify(HookEvent::ToolUsed {
                conversation_id: self.context.claim.conversation.id.to_string(),
                turn_id: self.context.claim.turn.id.to_string(),
                tool_name: tool.tool_name.as_str().to_owned(),
            }),
            _ => {}
        }
        self.buffer.push(event, at)?;
        if self.buffer.count() > self.context.shared().config.limits.events_per_turn && self.stopped.is_none() {
            self.stopped = Some(Stopped::EventLimit);
            if let Some(run) = &self.run {
                run.control().abort();
            }
        }
        Ok(())
    }

    /// Takes the result of the run.
    async fn end_of_run(&mut self, mut result: RunResult) -> Result<Outcome, TurnError> {
        let is_unfinished = result.is_error || result.aborted;
        match self.stopped {
            Some(Stopped::EventLimit) => {
                let message = "The turn was stopped: it has more events than limits.events_per_turn permits.";
                result = with_error(result, EVENT_LIMIT.into(), message);
            }
            Some(Stopped::Unanswered) if is_unfinished && !self.abort_requested => {
                result = with_error(result, PERMISSION_TIMEOUT.into(), UNANSWERED);
            }
            _ => {}
        }
        self.end_steering().await?;
        Ok(Outcome::Result(Box::new(result)))
    }

    /// Appends the waiting events to the log, and announces them.
    pub(super) async fn flush(&mut self) -> Result<(), TurnError> {
        let events = self.buffer.take()?;
        if events.is_empty() && self.deliveries.is_empty() {
            return Ok(());
        }
        let deliveries = std::mem::take(&mut self.deliveries);
        self.context.append(events, deliveries, self.buffer.progress()).await
    }

    fn report_loss(&mut self, reason: &str) -> Result<(), TurnError> {
        let claim = &self.context.claim;
        let event = GatewayEvent::SessionReset { reason: reason.to_owned() };
        let event = self.context.shared().event(&event, Some(claim.turn.id))?;
        self.buffer.push_stored(event)?;
        let notice = deliveries::notice(&self.context.recipient(), &format!("session-reset-{}", self.number), reason)?;
        self.deliveries.extend(notice);
        Ok(())
    }

    /// Kills the agent without a write to the store, and waits for its end.
    pub(super) async fn discard(&mut self) {
        self.run = None;
        if let Some(open) = self.open.take() {
            open.tools.end_turn();
            _ = timeout(DISCARD_LIMIT, open.session.abort()).await;
        }
    }
}

impl TurnContext {
    async fn start_attempt(&self, agent: &str) -> Result<u32, TurnError> {
        let shared = self.shared();
        let turn = &self.claim.turn;
        let attempt = turn.attempts.saturating_add(1);
        let event =
            GatewayEvent::TurnStarted { attempt, agent: agent.to_owned(), worker: shared.worker.as_str().to_owned() };
        let effects = Effects::events(vec![shared.event(&event, Some(turn.id))?]);
        let number = shared.store.start_attempt(self.lease(), effects, shared.clock.now()).await?;
        shared.hub.announce_growth(self.claim.conversation.id);
        shared.hooks.notify(HookEvent::TurnStarted {
            conversation_id: self.claim.conversation.id.to_string(),
            turn_id: turn.id.to_string(),
            attempt: number,
        });
        Ok(number)
    }

    /// Appends to the log. What the attempt has done is durable when this returns.
    pub(super) async fn append(
        &self,
        events: Vec<NewEvent>,
        deliveries: Vec<NewDelivery>,
        progress: teamster_store::Progress,
    ) -> Result<(), TurnError> {
        let shared = self.shared();
        let copies = events.clone();
        let has_deliveries = !deliveries.is_empty();
        let effects = Effects { events, deliveries };
        failpoint!("append.before");
        let append = || shared.store.append(self.lease(), progress, effects.clone(), shared.clock.now());
        let last = self.persist(append).await?;
        failpoint!("append.after");
        shared.hub.announce_appended(self.claim.conversation.id, copies, last);
        if has_deliveries {
            shared.deliveries.notify_one();
        }
        Ok(())
    }

    fn tool_turn(&self, directory: &std::path::Path) -> crate::tools::ToolTurn {
        crate::tools::ToolTurn {
            conversation: self.claim.conversation.id,
            turn: self.claim.turn.id,
            epoch: self.claim.lease.epoch,
            address: self.claim.conversation.address.clone(),
            author: self.claim.turn.message.author.clone(),
            directory: directory.to_owned(),
        }
    }
}

/// Returns whether the keeper has killed the agent because this worker did not renew its leases. The next worker decides
/// what follows.
fn is_of_lost_lease(result: &RunResult) -> bool {
    result.error_code == Some(ErrorCode::LeaseExpired)
}

fn end_of_limit(limit: &RateLimit) -> Option<Timestamp> {
    if limit.status != RateLimitStatus::Rejected {
        return None;
    }
    let time: jiff::Timestamp = limit.resets_at.as_ref()?.as_str().parse().ok()?;
    Some(Timestamp::from_millis(time.as_millisecond()))
}
