//! The rules of the stream, kept in one place for every agent.
//!
//! Whatever a protocol emits passes through a [`Transcript`]: one `init`; one complete `tool_use` before one
//! `tool_result`; no empty deltas; and at the end a result for every call that is still open, an `error` if the run
//! failed, and exactly one `done`. Each permission request gets one answer: at the end, those that have none are cancelled.
//! The transcript also gathers the text for the result.
//!
//! A run may take several attempts ([`Transcript::begin_again`]). They are one stream: what a failed attempt said is taken
//! back, what it used is added up, and no id of it comes again.
//!
//! What it keeps is bounded, whatever an agent does: the last 16 MiB of the text; 10,000 open calls, past which the oldest one
//! is closed with an error; the last 20,000 ids of closed calls and of messages; 100 warnings of each code, past which they are
//! counted; 1,000 denials, and 16 MiB of them.
//!
//! Invariant: after [`Transcript::end`] nothing comes out any more.

mod attempts;
mod requests;
mod text;
mod verdict;
mod warnings;

use crate::bounded::{self, Bounded, Ids as BoundedIds, MAX_ENTRIES};
use crate::protocol::{ExitReport, Outcome};
use attempts::{Earlier, Ids};
use requests::OpenRequests;
use teamster_types::event::{
    Delta, Done, Event, Failure, Init, LeftProcess, MessageId, RateLimit, RateLimitStatus, Retract, RunResult,
    SessionId, ToolId, ToolKind, ToolResult, ToolUse, Warning, WarningCode,
};
use text::{Text, Whole};
use verdict::{no_result, verdict};
use warnings::Warnings;

/// How many ids of closed calls, and of messages, are remembered.
const MAX_IDS: usize = 20_000;

/// Why the driver ended the run, where it was not the agent's own doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The caller ended it.
    Aborted,
    /// A limit, a failed start, or a fault of ours.
    Failed(Failure),
}

/// What the driver knows at the end.
#[derive(Clone, Debug, Default)]
pub struct End<'a> {
    /// Why the driver ended the run, if it did before the agent had given its final word.
    pub cause: Option<Cause>,
    /// How the process ended, if there was one.
    pub exit: Option<ExitReport<'a>>,
    /// Who lives on.
    pub left: Vec<LeftProcess>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

/// A tool call without its result.
#[derive(Clone, Debug)]
struct OpenTool {
    name: String,
    parent: Option<ToolId>,
}

/// Keeps the rules of the stream and gathers the result.
#[derive(Debug)]
pub struct Transcript {
    init: Option<(SessionId, Option<String>)>,
    /// The session that a reader of the stream knows of.
    session_told: Option<SessionId>,
    text: Text,
    /// Messages of which something was told, and the one that speaks: most deltas belong to it.
    spoken: BoundedIds<MessageId>,
    speaking: Option<MessageId>,
    /// How many messages were spoken so long ago that their ids are forgotten: then not everything can be taken back.
    forgotten: usize,
    retracted: BoundedIds<MessageId>,
    requests: OpenRequests,
    open_tools: Bounded<ToolId, OpenTool>,
    closed_tools: BoundedIds<ToolId>,
    has_tools: bool,
    warnings: Warnings,
    /// Something was said or done.
    begun: bool,
    /// The vendor's limit that holds, as far as the agent tells.
    limit: Option<RateLimit>,
    outcome: Option<Outcome>,
    failure: Option<Failure>,
    earlier: Earlier,
    ids: Ids,
    ended: bool,
}

impl Transcript {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            init: None,
            session_told: None,
            text: Text::default(),
            spoken: BoundedIds::of(MAX_IDS),
            speaking: None,
            forgotten: 0,
            retracted: BoundedIds::of(MAX_IDS),
            requests: OpenRequests::default(),
            open_tools: Bounded::default(),
            closed_tools: BoundedIds::of(MAX_IDS),
            has_tools: false,
            warnings: Warnings::default(),
            begun: false,
            limit: None,
            outcome: None,
            failure: None,
            earlier: Earlier::default(),
            ids: Ids::default(),
            ended: false,
        }
    }

    /// Passes an event on, as the rules allow.
    pub fn push(&mut self, mut event: Event, out: &mut impl Extend<Event>) {
        if self.ended {
            return;
        }
        self.ids.tell(&mut event);
        let pass = match &mut event {
            Event::Init(init) => self.introduce(init, out),
            Event::Text(delta) => {
                if delta.parent_tool_id.is_none() && !delta.text.is_empty() {
                    self.text.append(&delta.message_id, &delta.text);
                }
                self.speaks(delta)
            }
            Event::Thinking(delta) => self.speaks(delta),
            Event::Retract(retract) => {
                self.text.retract(&retract.message_id);
                self.speaking = None;
                let told = self.spoken.remove(&retract.message_id).is_some();
                if told {
                    self.retracted.add(retract.message_id.clone());
                }
                told
            }
            Event::ToolUse(tool) => self.open(tool, out),
            Event::Warning(warning) => self.warnings.pass(&warning.code),
            Event::ToolResult(result) => self.close(result, out),
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
                self.earlier.with_usage(&mut so_far.usage, &so_far.scope);
                true
            }
            Event::RateLimit(limit) => {
                self.limit = (limit.status == RateLimitStatus::Rejected).then(|| (**limit).clone());
                true
            }
            _ => true,
        };
        if pass {
            self.begun |=
                matches!(event, Event::Text(_) | Event::Thinking(_) | Event::ToolUse(_) | Event::ToolResult(_));
            out.extend([event]);
        }
    }

    /// Takes the agent's final word; a later one replaces it.
    pub fn set_outcome(&mut self, mut outcome: Outcome) {
        self.ids.tell_outcome(&mut outcome);
        self.outcome = Some(outcome);
    }

    /// Whether the agent has given its final word.
    pub fn has_outcome(&self) -> bool {
        self.outcome.is_some()
    }

    /// The conversation, as far as the agent has told.
    pub fn session_id(&self) -> Option<&SessionId> {
        let last = self.outcome.as_ref().and_then(|outcome| outcome.session_id.as_ref());
        last.or_else(|| self.init.as_ref().map(|(id, _)| id))
    }

    /// The name of the tool that has been running for longest.
    pub fn running_tool(&self) -> Option<&str> {
        self.open_tools.iter().next().map(|(_, tool)| tool.name.as_str())
    }

    /// Whether a tool was called, in whichever attempt.
    pub fn has_tools(&self) -> bool {
        self.has_tools
    }

    /// Whether so much was said that not everything can be taken back, and no other attempt may begin.
    pub fn is_past_retraction(&self) -> bool {
        self.forgotten > 0
    }

    /// The vendor's limit that holds now, if the agent told of one in this attempt.
    pub fn limit(&self) -> Option<&RateLimit> {
        self.limit.as_ref()
    }

    /// What the attempts before this one have cost, in US dollars, as far as the agent reports it.
    pub fn earlier_cost_usd(&self) -> f64 {
        self.earlier.cost_usd()
    }

    /// Why the run failed, if it ends like this; `None` if it went well.
    pub fn failure(&self, end: &End<'_>) -> Option<Failure> {
        self.verdict(end).0
    }

    /// Begins another attempt, in place of an end: results for open calls, and a `retract` for every message of which
    /// something was told.
    pub fn begin_again(&mut self, out: &mut impl Extend<Event>) {
        if self.ended {
            return;
        }
        self.interrupt_open_tools(out);
        self.text.clear();
        self.speaking = None;
        let void: Vec<_> = self.spoken.take().into_iter().map(|(message_id, ())| message_id).collect();
        out.extend(void.iter().map(|id| Event::Retract(Retract { message_id: id.clone() })));
        let retracted = self.retracted.take().into_iter().map(|(message_id, ())| message_id);
        self.ids.begin_again(retracted.chain(void), self.closed_tools.iter().map(|(id, ())| id.clone()));
        self.earlier.keep(self.outcome.take().unwrap_or_default());
        (self.failure, self.limit) = (None, None);
    }

    /// Ends the stream: results for open calls, an `error` if the run failed, and `done`.
    pub fn end(&mut self, end: &End<'_>, out: &mut impl Extend<Event>) {
        if self.ended {
            return;
        }
        self.interrupt_open_tools(out);
        let (failure, aborted) = self.verdict(end);
        let last = self.outcome.take().unwrap_or_default();
        let outcome = std::mem::take(&mut self.earlier).with(last);
        let result = self.result(outcome, end, failure.as_ref(), aborted);
        out.extend(self.warnings.take().map(Event::from));
        if let Some(failure) = failure {
            out.extend([Event::Error(Box::new(failure))]);
        }
        out.extend([Event::Done(Box::new(Done { result }))]);
        self.ended = true;
    }

    /// Notes who the agent is. A late introduction tells no reader any more who speaks; what it says still counts for the
    /// result, and that the session is another one must be known.
    fn introduce(&mut self, init: &Init, out: &mut impl Extend<Event>) -> bool {
        let first = self.init.is_none() && !self.begun;
        self.init = Some((init.session_id.clone(), init.model.clone().map(Into::into)));
        let other = self.session_told.as_ref().is_some_and(|told| *told != init.session_id);
        if other {
            let text = format!("the run goes on in the session {}", init.session_id.as_str());
            let warning = Warning::new(WarningCode::SessionChanged, text);
            out.extend([warning.with("sessionId", init.session_id.as_str()).into()]);
        }
        if first || other {
            self.session_told = Some(init.session_id.clone());
        }
        first
    }

    /// Notes who speaks; an empty delta is none.
    fn speaks(&mut self, delta: &Delta) -> bool {
        if delta.text.is_empty() {
            return false;
        }
        if self.speaking.as_ref() != Some(&delta.message_id) {
            if !self.spoken.contains(&delta.message_id) {
                self.forgotten += self.spoken.insert(delta.message_id.clone(), (), 0).len();
            }
            self.speaking = Some(delta.message_id.clone());
        }
        true
    }

    fn open(&mut self, tool: &ToolUse, out: &mut impl Extend<Event>) -> bool {
        if self.open_tools.contains(&tool.tool_id) || self.closed_tools.contains(&tool.tool_id) {
            return false;
        }
        self.has_tools = true;
        let open = OpenTool { name: tool.tool_name.as_str().to_owned(), parent: tool.parent_tool_id.clone() };
        let bytes = open.name.len() + open.parent.as_ref().map_or(0, |parent| parent.as_str().len());
        let excess = self.open_tools.insert(tool.tool_id.clone(), open, bytes);
        let why = format!("closed without a result: more than {MAX_ENTRIES} calls are open");
        self.give_up(excess, &why, out);
        true
    }

    /// Closes calls that get no result of the agent's.
    fn give_up(&mut self, calls: Vec<(ToolId, OpenTool)>, why: &str, out: &mut impl Extend<Event>) {
        for (tool_id, tool) in calls {
            self.closed_tools.add(tool_id.clone());
            out.extend([Event::ToolResult(Box::new(ToolResult {
                tool_id,
                output: why.into(),
                is_error: Some(true),
                content: None,
                parent_tool_id: tool.parent,
            }))]);
        }
    }

    fn close(&mut self, result: &ToolResult, out: &mut impl Extend<Event>) -> bool {
        if self.closed_tools.contains(&result.tool_id) {
            return false;
        }
        if self.open_tools.remove(&result.tool_id).is_none() {
            // A result without its call: the call is said first, with what is known of it.
            out.extend([Event::ToolUse(Box::new(ToolUse {
                tool_id: result.tool_id.clone(),
                tool_name: "unknown".into(),
                input: serde_json::json!({}).into(),
                kind: ToolKind::Unclassified,
                server: None,
                parent_tool_id: result.parent_tool_id.clone(),
            }))]);
        }
        self.has_tools = true;
        self.closed_tools.add(result.tool_id.clone());
        true
    }

    /// Closes what is open: permission requests, and calls.
    fn interrupt_open_tools(&mut self, out: &mut impl Extend<Event>) {
        self.requests.cancel_all(out);
        let open = self.open_tools.take();
        self.give_up(open, "interrupted", out);
    }

    fn verdict(&self, end: &End<'_>) -> (Option<Failure>, bool) {
        let (failure, interrupted) = match &self.outcome {
            Some(outcome) => (outcome.failure.clone(), outcome.interrupted),
            None => (Some(self.failure.clone().unwrap_or_else(|| no_result(end.exit))), false),
        };
        verdict(failure, interrupted, end.cause.clone())
    }

    fn result(&mut self, outcome: Outcome, end: &End<'_>, failure: Option<&Failure>, aborted: bool) -> RunResult {
        let Whole { text, final_text, missing } = self.text.take();
        let (init_session, init_model) = self.init.take().unzip();
        let (usage, usage_scope) = outcome.usage.unzip();
        let exit = end.exit.unwrap_or_default();
        let mut denials = Vec::new();
        bounded::push_denials(&mut denials, outcome.permission_denials);
        let mut result = RunResult::default();
        result.text = text.into();
        result.final_text = final_text.into();
        result.text_truncated = missing > 0;
        result.text_missing_bytes = missing;
        result.session_id = outcome.session_id.or(init_session);
        result.duration_ms = end.duration_ms;
        result.usage = usage;
        result.usage_scope = usage_scope;
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
