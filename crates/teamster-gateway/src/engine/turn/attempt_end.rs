//! The end of an attempt: what follows is decided first, and recorded in one transaction.

use teamster::event::{Done, ErrorCode, Event, Retract, RunResult, SessionId};
use teamster_store::{
    AttemptEnd, Effects, EndState, Finish, HandBackKind, Json, NewDelivery, NewEvent, Progress, Session, SessionChange,
    Timestamp, Usage, UsageEntry,
};

use super::attempt::{Attempt, Outcome};
use super::context::TurnError;
use super::failures::{failed, text_for_chat};
use super::opening::micros;
use crate::channels::deliveries;
use crate::engine::decisions::{AfterAttempt, AttemptFacts, after_attempt};
use crate::engine::ending::{TurnAnswer, TurnEnding};
use crate::event::{GatewayEvent, rfc3339};
use crate::telemetry::spans;

/// The code of a turn that was interrupted after it had an effect.
const INTERRUPTED: &str = "INTERRUPTED";

/// The text for the chat if an interrupted turn cannot continue.
const CANNOT_CONTINUE: &str = "The gateway was stopped while the agent worked on this message, and the agent's session no \
                               longer exists. Retry the message if it may run again.";

impl Attempt<'_> {
    /// Records the end of the attempt, and keeps the session if the next turn can use it.
    pub(super) async fn record(&mut self, outcome: Outcome) -> Result<(), TurnError> {
        if self.open.as_ref().is_some_and(|open| open.tools.end_turn()) {
            // The agent may have ended before it reported the call.
            self.buffer.raise(Progress::Tools);
        }
        if let Some(live) = self.live.take() {
            let late = live.finish().await;
            self.late_edit_until = Some(self.context.shared().clock.now().after(late));
        }
        let result = match outcome {
            Outcome::Result(result) => result,
            Outcome::Shutdown => return self.record_shutdown().await,
        };
        spans::attempt_ended(result.error_code.as_ref().map(ErrorCode::as_str));
        let shared = self.context.shared();
        let facts = AttemptFacts {
            result: &result,
            attempt: self.number,
            uncounted: self.context.uncounted,
            progress: self.buffer.progress(),
            limited_until: self.limited_until,
            abort_requested: self.abort_requested,
            ran_tools: self.context.claim.turn.ran_tools || self.buffer.progress() == Progress::Tools,
            resumed: self.resumed,
        };
        let after = after_attempt(&facts, &shared.config.retries, shared.clock.now(), jitter());
        match &after {
            AfterAttempt::Done => self.record_end(EndState::Done, &result, None).await?,
            AfterAttempt::Aborted => self.record_end(EndState::Aborted, &result, Some("ABORTED".to_owned())).await?,
            AfterAttempt::Failed(code) => self.record_end(EndState::Failed, &result, Some(code.to_string())).await?,
            AfterAttempt::Interrupted => {
                let result = failed(INTERRUPTED.into(), CANNOT_CONTINUE);
                self.record_end(EndState::Failed, &result, Some(INTERRUPTED.to_owned())).await?;
            }
            AfterAttempt::Retry { .. } | AfterAttempt::Pause { .. } | AfterAttempt::NewSession => {
                self.record_retry(&after, &result).await?;
            }
        }
        self.keep_session(&after);
        Ok(())
    }

    async fn record_end(&mut self, state: EndState, result: &RunResult, code: Option<String>) -> Result<(), TurnError> {
        let mut events = self.buffer.take()?;
        let turn = self.context.claim.turn.id;
        let at = self.context.shared().clock.now();
        if let Some(error) = &result.error {
            events.push(run_event(turn, at, "error", &Event::Error(error.clone()))?);
        }
        events.push(run_event(turn, at, "done", &Event::Done(Box::new(Done::new(result.clone()))))?);
        let error = text_for_chat(result);
        let ending = TurnEnding { state, code: code.as_deref(), error: error.as_deref() };
        let finished = self.context.shared().event(&ending.event(), Some(turn))?;
        let session = result.session_id.as_ref().map(SessionId::as_str);
        let answer = TurnAnswer { text: result.final_text.as_str(), session };
        let mut answer = ending.deliveries(&self.context.recipient(), answer, "aborted")?;
        if state != EndState::Aborted {
            // It replaces the message that the display has edited.
            for delivery in &mut answer {
                delivery.not_before = self.after_edits(delivery.not_before);
            }
        }
        let mut attempt = self.attempt_end(result, events, vec![finished], answer)?;
        if code.as_deref() == Some(INTERRUPTED) {
            attempt.session = SessionChange::Clear { agent: self.agent.clone() };
        }
        self.context.finish(Finish { state, result: Some(Json::of(result)?), error_code: code, attempt }).await
    }

    async fn record_retry(&mut self, after: &AfterAttempt, result: &RunResult) -> Result<(), TurnError> {
        let shared = self.context.shared();
        let (turn, now) = (self.context.claim.turn.id, shared.clock.now());
        let (kind, last, notice) = match after {
            AfterAttempt::Retry { delay, code } => {
                let at = self.after_edits(now.after(*delay));
                (HandBackKind::Retry(at), vec![self.retrying(at, now, code.to_string())], None)
            }
            AfterAttempt::Pause { until } => {
                let time = rfc3339(*until);
                let notice = format!("The vendor's rate limit is reached. The conversation continues at {time}.");
                (HandBackKind::Pause(*until), vec![GatewayEvent::TurnPaused { until: time }], Some(notice))
            }
            _ => {
                let reason = "The agent's session no longer exists. The agent starts a new one with what the log has \
                              of the last messages, without the rest of the history.";
                let reset = GatewayEvent::SessionReset { reason: reason.to_owned() };
                let at = self.after_edits(now);
                let retrying = self.retrying(at, now, ErrorCode::SessionNotFound.to_string());
                (HandBackKind::Retry(at), vec![reset, retrying], Some(reason.to_owned()))
            }
        };
        let last = last.iter().map(|event| shared.event(event, Some(turn))).collect::<Result<_, _>>()?;
        let mut events = self.buffer.take()?;
        for message in std::mem::take(&mut self.streamed) {
            events.push(run_event(turn, now, "retract", &Event::Retract(Retract::new(message)))?);
        }
        let name = format!("attempt-{}", self.number);
        let notices = match notice {
            Some(text) => deliveries::notice(&self.context.recipient(), &name, &text)?,
            None => Vec::new(),
        };
        let mut attempt = self.attempt_end(result, events, last, notices)?;
        if *after == AfterAttempt::NewSession {
            attempt.session = SessionChange::Clear { agent: self.agent.clone() };
        }
        self.context.hand_back(kind, attempt).await
    }

    fn retrying(&self, at: Timestamp, now: Timestamp, code: String) -> GatewayEvent {
        let delay_ms = u64::try_from(at.as_millis().saturating_sub(now.as_millis())).unwrap_or_default();
        GatewayEvent::TurnRetrying { attempt: self.number, delay_ms, code }
    }

    /// Returns this time, or a later one at which the chat's service can no longer apply an edit of the display.
    fn after_edits(&self, time: Timestamp) -> Timestamp {
        self.late_edit_until.map_or(time, |until| until.max(time))
    }

    /// Puts a turn without effects back into its queue. For a turn with effects, the next start decides, as after a
    /// crash.
    async fn record_shutdown(&mut self) -> Result<(), TurnError> {
        // Another worker may claim the turn when it is handed back.
        self.discard().await;
        if self.buffer.progress() == Progress::Nothing {
            let events = self.buffer.take()?;
            let end = self.attempt_end(&RunResult::default(), events, Vec::new(), Vec::new())?;
            self.context.hand_back(HandBackKind::Shutdown, end).await?;
        } else {
            let event = GatewayEvent::TurnInterrupted { attempt: self.number };
            self.buffer.push_stored(self.context.shared().event(&event, Some(self.context.claim.turn.id))?)?;
            self.close_requests().await?;
            self.flush().await?;
        }
        Ok(())
    }

    /// Records the closed requests first, then the waiting events, then the end. The log and the chat show them in this
    /// order.
    fn attempt_end(
        &mut self,
        result: &RunResult,
        mut events: Vec<NewEvent>,
        last: Vec<NewEvent>,
        ending: Vec<NewDelivery>,
    ) -> Result<AttemptEnd, TurnError> {
        let closings = self.closings()?;
        let mut deliveries = std::mem::take(&mut self.deliveries);
        deliveries.extend(ending);
        let session = match &result.session_id {
            Some(id) => SessionChange::Set {
                agent: self.agent.clone(),
                session: Session { id: id.as_str().to_owned(), host: self.context.shared().host.clone() },
            },
            None => SessionChange::Keep,
        };
        events.extend(last);
        Ok(AttemptEnd { session, usage: self.usage(result), closings, effects: Effects { events, deliveries } })
    }

    fn usage(&self, result: &RunResult) -> Option<UsageEntry> {
        let cost_micros = result.total_cost_usd.map_or(0, micros);
        if result.usage.is_none() && cost_micros == 0 {
            return None;
        }
        let tokens = result.usage.clone().unwrap_or_default();
        let cached = tokens.cache_read_tokens.unwrap_or(0).saturating_add(tokens.cache_write_tokens.unwrap_or(0));
        Some(UsageEntry {
            day: self.context.shared().clock.today(),
            agent: self.agent.clone(),
            usage: Usage {
                input_tokens: tokens.input_tokens.saturating_add(cached),
                output_tokens: tokens.output_tokens,
                cost_micros,
            },
        })
    }

    /// Keeps the session of a turn that has ended with an answer or an abort. After a failure the session is closed,
    /// because its process may be in any state.
    fn keep_session(&mut self, after: &AfterAttempt) {
        let Some(open) = self.open.take() else { return };
        let shared = self.context.shared();
        let (conversation, epoch) = (self.context.claim.conversation.id, self.context.claim.lease.epoch);
        if matches!(after, AfterAttempt::Done | AfterAttempt::Aborted) && !shared.stop.is_cancelled() {
            shared.sessions.keep(conversation, epoch, open, shared.config.limits.idle_sessions);
        } else {
            shared.sessions.close(open);
        }
    }
}

pub(super) fn run_event(
    turn: teamster_store::TurnId,
    at: Timestamp,
    kind: &str,
    event: &Event,
) -> serde_json::Result<NewEvent> {
    Ok(NewEvent { kind: kind.to_owned(), turn: Some(turn), at, body: Json::of(event)? })
}

/// Returns a random number between 0 and 1.
fn jitter() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}
