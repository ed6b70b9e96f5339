//! The order of events, enforced in one place for all agents.
//!
//! All events of a protocol pass through a [`Transcript`]. It guarantees:
//! - one `init`, and no empty deltas;
//! - one complete `tool_use` before each `tool_result`, and one `tool_result` for each `tool_use`;
//! - one answer for each permission request; at the end, unanswered requests are cancelled;
//! - at the end, an `error` if the run failed, and exactly one `done`.
//!
//! The transcript also collects the text for the result.
//!
//! A run may consist of several attempts ([`Transcript::start_attempt`]), which form one stream. The messages of a failed
//! attempt are retracted, its usage is added to the total, and its ids are not reused.
//!
//! Its memory is bounded:
//! - the last 16 MiB of text are retained;
//! - at most 1 MiB of a running tool's output is emitted;
//! - of more than 10,000 open calls, the oldest one is closed with an error;
//! - the last 20,000 ids of closed calls and of messages are remembered;
//! - after 100 warnings with the same code, further ones are only counted;
//! - at most 1,000 denials with 16 MiB are retained.
//!
//! Invariant: nothing is emitted after [`Transcript::end`].

mod attempts;
mod end;
mod requests;
mod text;
mod tools;
mod warnings;

pub use end::{Cause, End};

use crate::bounded::{self, Ids as BoundedIds};
use crate::protocol::Outcome;
use attempts::{AttemptIds, EarlierAttempts, MAX_IDS};
use end::{failed_exit, is_requested_compaction, no_answer, no_result, verdict};
use requests::OpenRequests;
use teamster_types::event::{
    Delta, Done, Event, Failure, Init, MessageId, RateLimit, RateLimitStatus, Retract, RunResult, SessionId, Warning,
    WarningCode,
};
use text::{CollectedText, Text};
use tools::Tools;
use warnings::Warnings;

/// Enforces the order of events and collects the result.
#[derive(Debug)]
pub struct Transcript {
    init: Option<(SessionId, Option<String>)>,
    /// The session id that was emitted last.
    emitted_session: Option<SessionId>,
    text: Text,
    /// The messages of which deltas were emitted.
    emitted_messages: BoundedIds<MessageId>,
    /// The message of the last delta. Most deltas continue it.
    current_message: Option<MessageId>,
    /// The number of messages that were dropped from `emitted_messages`. They cannot be retracted.
    forgotten_messages: usize,
    retracted: BoundedIds<MessageId>,
    requests: OpenRequests,
    tools: Tools,
    /// The number of tool calls in the current attempt, and of compactions that the prompt requested. They are an answer.
    answers_in_attempt: usize,
    warnings: Warnings,
    /// Whether text or a tool call was emitted.
    has_output: bool,
    /// The vendor's rate limit that rejects requests at this time, if the agent reported one.
    limit: Option<RateLimit>,
    outcome: Option<Outcome>,
    failure: Option<Failure>,
    earlier: EarlierAttempts,
    ids: AttemptIds,
    ended: bool,
}

impl Transcript {
    /// Creates an empty transcript.
    pub fn new() -> Self {
        Self {
            init: None,
            emitted_session: None,
            text: Text::default(),
            emitted_messages: BoundedIds::of(MAX_IDS),
            current_message: None,
            forgotten_messages: 0,
            retracted: BoundedIds::of(MAX_IDS),
            requests: OpenRequests::default(),
            tools: Tools::default(),
            answers_in_attempt: 0,
            warnings: Warnings::default(),
            has_output: false,
            limit: None,
            outcome: None,
            failure: None,
            earlier: EarlierAttempts::default(),
            ids: AttemptIds::default(),
            ended: false,
        }
    }

    /// Emits an event of the agent, preceded by events that the order requires. An event that the order forbids is dropped.
    pub fn push(&mut self, mut event: Event, out: &mut impl Extend<Event>) {
        if self.ended {
            return;
        }
        self.ids.rename(&mut event);
        let pass = match &mut event {
            Event::Init(init) => self.add_init(init, out),
            Event::Text(_) | Event::Thinking(_) => self.note_delta(&event),
            Event::Retract(retract) => {
                self.text.retract(&retract.message_id);
                self.current_message = None;
                let was_emitted = self.emitted_messages.remove(&retract.message_id).is_some();
                if was_emitted {
                    self.retracted.add(retract.message_id.clone());
                }
                was_emitted
            }
            Event::ToolUse(tool) => {
                let is_new = self.tools.open(tool, out);
                self.answers_in_attempt += usize::from(is_new);
                is_new
            }
            Event::Warning(warning) => {
                self.answers_in_attempt += usize::from(is_requested_compaction(warning));
                self.warnings.pass(&warning.code)
            }
            Event::ToolOutput(output) => self.tools.add_output(output),
            Event::ToolResult(result) => self.tools.close(result, out),
            Event::PermissionRequest(request) => {
                self.requests.open(&request.request_id, out);
                true
            }
            Event::PermissionAnswered(answered) => self.requests.answer(answered),
            Event::Error(failure) => {
                self.failure = Some((**failure).clone());
                false
            }
            Event::Done(_) => false,
            Event::Usage(so_far) => {
                self.earlier.add_usage_to(&mut so_far.usage, &so_far.scope);
                true
            }
            Event::RateLimit(limit) => {
                self.limit = (limit.status == RateLimitStatus::Rejected).then(|| (**limit).clone());
                true
            }
            _ => true,
        };
        if pass {
            self.has_output |=
                matches!(event, Event::Text(_) | Event::Thinking(_) | Event::ToolUse(_) | Event::ToolResult(_));
            out.extend([event]);
        }
    }

    /// Emits a delta: like [`push`](Self::push), without a list, since nothing else is emitted with a delta. `None` if the order
    /// forbids it.
    ///
    /// # Errors
    /// The event, if it is no delta.
    pub fn push_delta(&mut self, mut event: Event) -> Result<Option<Event>, Event> {
        if !matches!(event, Event::Text(_) | Event::Thinking(_)) {
            return Err(event);
        }
        if self.ended {
            return Ok(None);
        }
        self.ids.rename(&mut event);
        let pass = self.note_delta(&event);
        self.has_output |= pass;
        Ok(pass.then_some(event))
    }

    /// Records a delta, and the text of the main thread. Returns whether it is emitted.
    fn note_delta(&mut self, event: &Event) -> bool {
        match event {
            Event::Text(delta) => {
                if delta.parent_tool_id.is_none() && !delta.text.is_empty() {
                    self.text.append(&delta.message_id, &delta.text);
                }
                self.add_delta(delta)
            }
            Event::Thinking(delta) => self.add_delta(delta),
            _ => false,
        }
    }

    /// Sets the outcome that the agent reported. It replaces an earlier outcome.
    pub fn set_outcome(&mut self, mut outcome: Outcome) {
        self.ids.rename_in_outcome(&mut outcome);
        self.outcome = Some(outcome);
    }

    /// Whether the agent has reported an outcome.
    pub fn has_outcome(&self) -> bool {
        self.outcome.is_some()
    }

    /// Returns the id of the conversation, if the agent has reported it.
    pub fn session_id(&self) -> Option<&SessionId> {
        let last = self.outcome.as_ref().and_then(|outcome| outcome.session_id.as_ref());
        last.or_else(|| self.init.as_ref().map(|(id, _)| id))
    }

    /// Returns the name of the tool that has been running for the longest time.
    pub fn running_tool(&self) -> Option<&str> {
        self.tools.running()
    }

    /// Whether a tool was called in any attempt.
    pub fn has_tools(&self) -> bool {
        self.tools.calls() > 0
    }

    /// Whether there were too many messages to retract all of them. Then no other attempt may start.
    pub fn is_past_retraction(&self) -> bool {
        self.forgotten_messages > 0
    }

    /// Returns the vendor's rate limit that rejects requests at this time, if the agent reported one in this attempt.
    pub fn limit(&self) -> Option<&RateLimit> {
        self.limit.as_ref()
    }

    /// Returns the cost of the earlier attempts in US dollars, as far as the agent reports it.
    pub fn earlier_cost_usd(&self) -> f64 {
        self.earlier.cost_usd()
    }

    /// Returns the failure of a run that ends this way; `None` for a success.
    pub fn failure(&self, end: &End<'_>) -> Option<Failure> {
        self.verdict(end).0
    }

    /// Starts another attempt instead of ending the run. Emits results for open calls, and a `retract` for each message of
    /// which a delta was emitted.
    pub fn start_attempt(&mut self, out: &mut impl Extend<Event>) {
        if self.ended {
            return;
        }
        self.interrupt_open_tools(out);
        self.text.clear();
        self.current_message = None;
        let void: Vec<_> = self.emitted_messages.take().into_iter().map(|(message_id, ())| message_id).collect();
        out.extend(void.iter().map(|id| Event::Retract(Retract::new(id.clone()))));
        let retracted = self.retracted.take().into_iter().map(|(message_id, ())| message_id);
        self.ids.start_attempt(retracted.chain(void), self.tools.closed());
        self.earlier.add(self.outcome.take().unwrap_or_default());
        (self.failure, self.limit, self.answers_in_attempt) = (None, None, 0);
    }

    /// Ends the stream. Emits results for open calls, an `error` if the run failed, and `done`.
    pub fn end(&mut self, end: &End<'_>, out: &mut impl Extend<Event>) {
        if self.ended {
            return;
        }
        self.interrupt_open_tools(out);
        let (failure, aborted) = self.verdict(end);
        let last = self.outcome.take().unwrap_or_default();
        let has_answered = !self.text.is_empty() || self.answers_in_attempt > 0;
        let failure = failure.or_else(|| no_answer(&last).filter(|_| !aborted && !has_answered));
        let outcome = std::mem::take(&mut self.earlier).combined_with(last);
        if failure.is_none() && !aborted && end.cause.is_none() && !self.warnings.contains(&WarningCode::ExitForced) {
            out.extend(end.exit.and_then(failed_exit).map(Event::from));
        }
        let result = self.result(outcome, end, failure.as_ref(), aborted);
        out.extend(self.warnings.take().map(Event::from));
        if let Some(failure) = failure {
            out.extend([Event::Error(Box::new(failure))]);
        }
        out.extend([Event::Done(Box::new(Done::new(result)))]);
        self.ended = true;
    }

    /// Records an `init`. Returns whether it is emitted. A second or late `init` is not, but its content is part of the
    /// result. If it changes the session, a warning is emitted.
    fn add_init(&mut self, init: &Init, out: &mut impl Extend<Event>) -> bool {
        let is_first = self.init.is_none() && !self.has_output;
        self.init = Some((init.session_id.clone(), init.model.clone().map(Into::into)));
        let is_changed = self.emitted_session.as_ref().is_some_and(|session| *session != init.session_id);
        if is_changed {
            let text = format!("the run continues in the session {}", init.session_id.as_str());
            let warning = Warning::new(WarningCode::SessionChanged, text);
            out.extend([warning.with("sessionId", init.session_id.as_str()).into()]);
        }
        if is_first || is_changed {
            self.emitted_session = Some(init.session_id.clone());
        }
        is_first
    }

    /// Records the message of a delta. Returns whether the delta is emitted: an empty one is not.
    fn add_delta(&mut self, delta: &Delta) -> bool {
        if delta.text.is_empty() {
            return false;
        }
        if self.current_message.as_ref() != Some(&delta.message_id) {
            self.forgotten_messages +=
                self.emitted_messages.add_and_count(delta.message_id.clone()).unwrap_or_default();
            self.current_message = Some(delta.message_id.clone());
        }
        true
    }

    /// Cancels open permission requests and closes open calls.
    fn interrupt_open_tools(&mut self, out: &mut impl Extend<Event>) {
        self.requests.cancel_all(out);
        self.tools.interrupt(out);
    }

    fn verdict(&self, end: &End<'_>) -> (Option<Failure>, bool) {
        let (failure, interrupted) = match &self.outcome {
            Some(outcome) => (outcome.failure.clone(), outcome.interrupted),
            None => (Some(self.failure.clone().unwrap_or_else(|| no_result(end.exit))), false),
        };
        verdict(failure, interrupted, end.cause.clone())
    }

    fn result(&mut self, outcome: Outcome, end: &End<'_>, failure: Option<&Failure>, aborted: bool) -> RunResult {
        let CollectedText { text, final_text, missing } = self.text.take();
        let (init_session, init_model) = self.init.take().unzip();
        let (usage, usage_scope) = outcome.usage.unzip();
        let exit = end.exit.unwrap_or_default();
        let mut denials = Vec::new();
        bounded::push_denials(&mut denials, outcome.permission_denials);
        let mut result = RunResult::default();
        result.text = text;
        result.final_text = final_text;
        result.text_truncated = missing > 0;
        result.text_missing_bytes = missing;
        result.session_id = outcome.session_id.or(init_session);
        result.duration_ms = end.duration_ms;
        result.usage = usage;
        result.usage_scope = usage_scope;
        result.context = outcome.context;
        result.total_cost_usd = outcome.total_cost_usd;
        result.api_duration_ms = outcome.api_duration_ms;
        result.num_turns = outcome.num_turns;
        result.stop_reason = outcome.stop_reason;
        result.aborted = aborted;
        result.is_error = failure.is_some();
        result.error = failure.cloned().map(Box::new);
        result.error_code = failure.map(|failure| failure.code.clone());
        result.permission_denials = denials;
        result.structured_output = outcome.structured_output;
        result.model = outcome.model.or(init_model.flatten()).map(Into::into);
        result.exit_code = exit.code;
        result.signal = exit.signal.map(str::to_owned);
        result.stderr = Some(exit.stderr).filter(|text| !text.is_empty()).map(Into::into);
        result.left_processes.clone_from(&end.left);
        result
    }
}

impl Default for Transcript {
    fn default() -> Self {
        Self::new()
    }
}
