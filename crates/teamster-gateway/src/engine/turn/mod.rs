//! One turn, from its claim to its end.
//!
//! Every write carries the lease. A turn that has lost its lease can no longer write, and its process tree is killed.

mod attempt;
mod attempt_end;
mod context;
mod failures;
mod open_requests;
mod opening;
mod permission_requests;
mod steered;
mod steering;

use teamster::event::{Done, Event, SessionId};
use teamster_store::{
    AttemptEnd, Effects, EndState, Finish, JoinedOutcome, Json, Message, PermissionOutcome, Progress, Session,
    SessionChange,
};
use tracing::Instrument as _;

use self::attempt::Attempt;
use self::attempt_end::run_event;
pub(super) use self::context::{TurnContext, TurnError};
use self::failures::failed;
use self::opening::Continuation;
use super::conversations::permitted_directory;
use super::decisions::{ClaimFacts, TurnStart, turn_start};
use super::ending::{TurnAnswer, TurnEnding};
use super::intake::is_by_api;
use super::past_attempts::{InterruptedAttempt, PastAttempts, past_attempts};
use crate::config::{ConversationSettings, Origin, TurnSettings, resolve_message};
use crate::telemetry::spans;

/// Runs a claimed turn. On an error the lease expires, and the turn is claimed again.
pub(super) async fn run(mut context: TurnContext) -> Result<(), TurnError> {
    context.close_abandoned_requests().await?;
    let past = context.past_attempts().await?;
    let settings = match context.settings() {
        Ok(Some(settings)) => settings,
        Ok(None) => {
            let reason = "a rule of the operator no longer permits this message";
            return context.end_without_attempt(EndState::Failed, "FORBIDDEN", reason, &past).await;
        }
        Err(error) => {
            let reason = format!("the stored settings of the conversation cannot be read: {error}");
            return context.end_without_attempt(EndState::Failed, "INVALID_REQUEST", &reason, &past).await;
        }
    };
    if context.has_left_its_roots(&settings) {
        let reason = "the working directory leads out of the directories that the configuration permits";
        return context.end_without_attempt(EndState::Failed, "FORBIDDEN", reason, &past).await;
    }
    let (claim, shared) = (&context.claim, context.shared());
    let facts = ClaimFacts {
        interrupted: claim.interrupted,
        crashes: claim.turn.attempts.saturating_sub(past.recorded),
        progress: if past.has_ended { Progress::Nothing } else { claim.turn.progress },
        ran_tools: claim.turn.ran_tools,
        has_session: past.session.is_some()
            || claim.session.as_ref().is_some_and(|session| session.host == shared.host),
    };
    match turn_start(facts, shared.config.interrupted, &shared.config.retries) {
        TurnStart::Park => {
            let reason = "The gateway has crashed three times while it worked on this message. The message is not started \
                          again. Retry it when the cause is found.";
            context.end_without_attempt(EndState::Failed, "PARKED", reason, &past).await
        }
        TurnStart::ReportInterrupted => {
            let reason = "The gateway was stopped while the agent worked on this message. To resume it, send \"continue\" or \
                          retry the message.";
            context.end_without_attempt(EndState::Failed, "INTERRUPTED", reason, &past).await
        }
        TurnStart::Prompt | TurnStart::Continue if claim.turn.abort_requested => {
            let reason = "The turn was aborted before it started.";
            context.end_without_attempt(EndState::Aborted, "ABORTED", reason, &past).await
        }
        TurnStart::Prompt => {
            context.release_joined().await?;
            context.attempt(settings, None, &past).await
        }
        TurnStart::Continue => {
            let continued = Continuation { session: past.session.clone() };
            context.attempt(settings, Some(continued), &past).await
        }
    }
}

impl TurnContext {
    /// Returns whether a part of the directory has become a link that leads out of the permitted directories since it was
    /// selected. An agent that may change files can do that.
    fn has_left_its_roots(&self, settings: &TurnSettings) -> bool {
        // A missing directory is reported when the agent starts.
        settings.directory.is_dir() && permitted_directory(&self.shared().config, &settings.directory).is_err()
    }

    /// Resolves the settings of the turn. `None` means that a rule rejects its message.
    fn settings(&self) -> Result<Option<TurnSettings>, TurnError> {
        self.settings_of(&self.claim.turn.message)
    }

    /// Resolves the settings that a message has in the conversation. `None` means that a rule rejects it.
    fn settings_of(&self, message: &Message) -> Result<Option<TurnSettings>, TurnError> {
        let conversation = &self.claim.conversation;
        let settings: ConversationSettings = conversation.settings.to()?;
        let (channel, chat) = (&conversation.address.channel, &conversation.address.chat);
        let origin = Origin { channel, chat, author: &message.author };
        let agent = Some(conversation.agent.as_str());
        Ok(resolve_message(&self.shared().config, agent, &settings, origin, is_by_api(message)?))
    }

    /// Returns what is known of the attempts of a turn that was interrupted, and counts those that do not count as failed.
    async fn past_attempts(&mut self) -> Result<PastAttempts, TurnError> {
        if self.claim.turn.attempts == 0 {
            return Ok(PastAttempts::default());
        }
        let found = past_attempts(&*self.shared().store, &self.claim.turn).await?;
        self.uncounted = found.uncounted;
        let is_needed = self.claim.interrupted || self.claim.turn.ran_tools;
        Ok(if is_needed { found } else { PastAttempts::default() })
    }

    /// Closes the permission requests of a worker that has died.
    async fn close_abandoned_requests(&self) -> Result<(), TurnError> {
        if self.claim.open_permissions.is_empty() {
            return Ok(());
        }
        let outcome = PermissionOutcome::WorkerLost;
        let closings: Result<Vec<_>, TurnError> =
            self.claim.open_permissions.iter().map(|request| self.closing(request.id, outcome)).collect();
        self.shared().store.close_permissions(self.lease(), closings?, self.shared().clock.now()).await?;
        self.gateway.announce_growth(self.claim.conversation.id);
        Ok(())
    }

    /// Makes the messages of a void attempt wait for turns of their own.
    async fn release_joined(&self) -> Result<(), TurnError> {
        let shared = self.shared();
        for turn in &self.claim.joined {
            let (outcome, effects) = (JoinedOutcome::Waits, Effects::default());
            shared.store.resolve_joined(self.lease(), *turn, outcome, effects, shared.clock.now()).await?;
        }
        Ok(())
    }

    /// Starts an attempt and records its end. `continued` is an interrupted attempt that it continues.
    async fn attempt(
        &mut self,
        settings: TurnSettings,
        continued: Option<Continuation>,
        past: &PastAttempts,
    ) -> Result<(), TurnError> {
        if let Some(reason) = self.reserve_budget(&settings).await? {
            return self.end_without_attempt(EndState::Failed, "BUDGET", &reason, past).await;
        }
        let span = spans::attempt(&settings.agent, self.claim.turn.attempts.saturating_add(1));
        let lost = self.lost.clone();
        let run = async {
            // The lease may be lost while this waits for the store.
            let start = Attempt::start(self, settings, continued);
            let mut attempt = lost.run_until_cancelled(start).await.unwrap_or(Err(TurnError::LeaseLost))?;
            let to_end = async {
                let outcome = attempt.drive().await?;
                attempt.record(outcome).await
            };
            let ended = lost.run_until_cancelled(to_end).await.unwrap_or(Err(TurnError::LeaseLost));
            if ended.is_err() {
                attempt.discard().await;
            }
            ended
        };
        run.instrument(span).await
    }

    /// Returns what an interrupted attempt has left. An agent without output may have no transcript that can be resumed.
    fn interrupted(&self, past: &PastAttempts) -> Option<InterruptedAttempt> {
        let turn = &self.claim.turn;
        let has_output = turn.progress != Progress::Nothing || turn.ran_tools;
        past.interrupted().filter(|_| self.claim.interrupted && has_output)
    }

    /// Ends the turn before an agent was started. The session and the text of an interrupted attempt are kept, so that the
    /// next turn resumes the session.
    async fn end_without_attempt(
        &self,
        state: EndState,
        code: &str,
        reason: &str,
        past: &PastAttempts,
    ) -> Result<(), TurnError> {
        let (shared, turn) = (self.shared(), self.claim.turn.id);
        let mut result = failed(code.into(), reason);
        let (mut session, mut events) = (SessionChange::Keep, Vec::new());
        if let Some(interrupted) = self.interrupted(past) {
            (result.text, result.final_text) = (interrupted.text.into(), interrupted.final_text.into());
            if let Some((agent, id)) = interrupted.session {
                result.session_id = Some(SessionId::from(id.as_str()));
                session = SessionChange::Set { agent, session: Session { id, host: shared.host.clone() } };
            }
            // The history of the conversation has answers from this event.
            events.push(run_event(
                turn,
                shared.clock.now(),
                "done",
                &Event::Done(Box::new(Done::new(result.clone()))),
            )?);
        }
        let ending = TurnEnding { state, code: Some(code), error: Some(reason) };
        events.push(shared.event(&ending.event(), Some(turn))?);
        let deliveries = ending.deliveries(&self.recipient(), TurnAnswer::default(), "aborted")?;
        let effects = Effects { events, deliveries };
        let finish = Finish {
            state,
            result: Some(Json::of(&result)?),
            error_code: Some(code.to_owned()),
            attempt: AttemptEnd { session, usage: None, closings: Vec::new(), effects },
        };
        self.finish(finish).await
    }
}
