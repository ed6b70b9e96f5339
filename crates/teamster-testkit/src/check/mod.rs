//! The rules of an event stream, checked from outside: the guarantees of every run of every agent.
//!
//! ```
//! use teamster_types::event::{Done, Event, RunResult};
//! use teamster_testkit::check::check;
//!
//! let done = Event::Done(Box::new(Done::new(RunResult::default())));
//! assert!(check(&[done.clone()]).is_ok());
//! let violations = check(&[done.clone(), done]).unwrap_err();
//! assert_eq!(violations[0].to_string(), "event 1 (done): done is the last event: it follows another done");
//! ```
//!
//! [`check`] checks a whole stream, a [`Checker`] one event at a time, and [`check_ndjson`] the
//! printed text of a program. The result is data: the broken rules, and the event that broke each.
//!
//! Invariant: the rules are implemented here independently of the code that enforces them in a run,
//! so that a fault in that code is detected.

mod messages;
mod ndjson;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use teamster_types::event::{ErrorCode, Event, MessageId, PermissionAnswered, RequestId, RunResult, ToolId};

use messages::Messages;
pub use ndjson::check_ndjson;
pub use rule::{Rule, Violation};

/// Checks a whole stream.
///
/// # Errors
/// Returns all violations, in the order of the events.
pub fn check(events: &[Event]) -> Result<(), Vec<Violation>> {
    let mut checker = Checker::new();
    for event in events {
        checker.push(event);
    }
    checker.finish()
}

/// Checks a stream while it is produced.
#[derive(Debug, Default)]
pub struct Checker {
    /// The number of events pushed so far.
    count: usize,
    has_init: bool,
    /// The first event that must follow `init`.
    first_activity: Option<usize>,
    messages: Messages,
    /// Tool calls without a result, and the event of each.
    open_tools: HashMap<ToolId, usize>,
    closed_tools: HashSet<ToolId>,
    /// Permission requests without an answer, and the event of each.
    open_requests: HashMap<RequestId, usize>,
    answered_requests: HashSet<RequestId>,
    /// The code of the `error` event.
    error: Option<ErrorCode>,
    done: bool,
    violations: Vec<Violation>,
}

impl Checker {
    /// Creates a checker for a new stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next event.
    pub fn push(&mut self, event: &Event) {
        if self.done {
            let another = if matches!(event, Event::Done(_)) { "another done" } else { "done" };
            self.violate(Rule::DoneIsLast, event, format!("it follows {another}"));
        }
        if self.error.is_some() && !self.done && !matches!(event, Event::Done(_) | Event::Error(_)) {
            self.violate(Rule::ErrorJustBeforeDone, event, "it follows the error".to_owned());
        }
        match event {
            Event::Init(_) => self.init(event),
            Event::Text(delta) | Event::Thinking(delta) => {
                self.first_activity.get_or_insert(self.count);
                if delta.text.is_empty() {
                    self.violate(Rule::NoEmptyDelta, event, format!("of message {}", delta.message_id.escaped()));
                }
                self.messages.delta(delta, matches!(event, Event::Text(_)));
            }
            Event::Retract(retract) => self.retract(event, &retract.message_id),
            Event::ToolUse(tool) => self.tool_use(event, &tool.tool_id),
            Event::ToolOutput(output) => {
                if output.text.is_empty() {
                    self.violate(Rule::NoEmptyDelta, event, format!("of call {}", output.tool_id.escaped()));
                }
                if !self.open_tools.contains_key(&output.tool_id) {
                    self.violate(Rule::OutputOfRunningCall, event, format!("call {}", output.tool_id.escaped()));
                }
            }
            Event::ToolResult(result) => self.tool_result(event, &result.tool_id),
            Event::PermissionRequest(request) => self.permission_request(event, &request.request_id),
            Event::PermissionAnswered(answered) => self.permission_answered(event, answered),
            Event::Error(failure) => {
                if self.error.is_some() {
                    self.violate(Rule::OneError, event, String::new());
                } else {
                    self.error = Some(failure.code.clone());
                }
            }
            Event::Done(done) => {
                if !self.done {
                    self.result(event, &done.result);
                }
                self.done = true;
            }
            _ => {}
        }
        self.count += 1;
    }

    /// Returns the violations found so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Ends the check: the stream has ended.
    ///
    /// # Errors
    /// Returns all violations, in the order of the events.
    pub fn finish(mut self) -> Result<(), Vec<Violation>> {
        if !self.done {
            let detail = format!("the stream ended after {} events", self.count);
            self.violations.push(Violation { rule: Rule::OneDone, at: None, kind: "", detail });
            self.no_open_requests("", None);
            self.no_open_tools("", None);
        }
        if self.violations.is_empty() { Ok(()) } else { Err(self.violations) }
    }

    fn init(&mut self, event: &Event) {
        if self.has_init {
            self.violate(Rule::OneInit, event, String::new());
        } else if let Some(at) = self.first_activity {
            self.violate(Rule::InitFirst, event, format!("it follows event {at}"));
        }
        self.has_init = true;
    }

    fn retract(&mut self, event: &Event, id: &MessageId) {
        if !self.messages.retract(id) {
            self.violate(Rule::RetractNamesKnownMessage, event, format!("message {}", id.escaped()));
        }
    }

    fn tool_use(&mut self, event: &Event, id: &ToolId) {
        self.first_activity.get_or_insert(self.count);
        if self.open_tools.contains_key(id) || self.closed_tools.contains(id) {
            self.violate(Rule::ToolUseOnce, event, format!("call {}", id.escaped()));
        } else {
            self.open_tools.insert(id.clone(), self.count);
        }
    }

    fn tool_result(&mut self, event: &Event, id: &ToolId) {
        self.first_activity.get_or_insert(self.count);
        if self.open_tools.remove(id).is_some() {
            self.closed_tools.insert(id.clone());
        } else if self.closed_tools.contains(id) {
            self.violate(Rule::OneResultForEachUse, event, format!("call {} has another", id.escaped()));
        } else {
            self.violate(Rule::UseBeforeResult, event, format!("call {}", id.escaped()));
        }
    }

    fn permission_request(&mut self, event: &Event, id: &RequestId) {
        if self.open_requests.insert(id.clone(), self.count).is_some() {
            self.violate(Rule::RequestOnce, event, format!("request {}", id.escaped()));
        }
    }

    fn permission_answered(&mut self, event: &Event, answered: &PermissionAnswered) {
        let id = &answered.request_id;
        let was_pending = self.open_requests.remove(id).is_some();
        let detail = |what: &str| format!("request {}{what}", id.escaped());
        if was_pending && answered.request.is_some() {
            self.violate(Rule::RequestBeforeAnswer, event, detail(" is contained although it was reported before"));
        } else if !was_pending && answered.request.is_none() {
            let rule = if self.answered_requests.contains(id) {
                Rule::OneAnswerForEachRequest
            } else {
                Rule::RequestBeforeAnswer
            };
            self.violate(rule, event, detail(""));
        } else if answered.request.as_ref().is_some_and(|request| request.request_id != *id) {
            self.violate(Rule::RequestBeforeAnswer, event, detail(" contains another request"));
        }
        self.answered_requests.insert(id.clone());
    }

    fn no_open_requests(&mut self, kind: &'static str, at: Option<usize>) {
        let mut open: Vec<_> = self.open_requests.drain().collect();
        open.sort_by_key(|(_, at)| *at);
        self.violations.extend(open.into_iter().map(|(id, requested_at)| Violation {
            rule: Rule::OneAnswerForEachRequest,
            at,
            kind,
            detail: format!("request {} of event {requested_at} has none", id.escaped()),
        }));
    }

    fn result(&mut self, event: &Event, result: &RunResult) {
        self.no_open_requests(rule::kind(event), Some(self.count));
        self.no_open_tools(rule::kind(event), Some(self.count));
        // A truncated text lacks the number of bytes that the result reports.
        let missing = usize::try_from(result.text_missing_bytes).unwrap_or(usize::MAX);
        let whole = self.messages.text();
        let expected = whole.get(missing..).unwrap_or_default();
        if result.text != *expected || result.text_truncated != (missing > 0) {
            self.violate(Rule::ResultText, event, rule::describe_difference(&result.text, expected));
        }
        let last = self.messages.final_text();
        let kept = last.len().min(expected.len());
        let expected = last.get(last.len() - kept..).unwrap_or_default();
        if result.final_text != expected {
            let detail = rule::describe_difference(&result.final_text, expected);
            self.violate(Rule::FinalText, event, detail);
        }
        let code = self.error.clone();
        if result.is_error != code.is_some() {
            let other = if code.is_some() { "an error event" } else { "no error event" };
            self.violate(Rule::IsErrorMeansError, event, format!("isError is {} after {other}", result.is_error));
        }
        if result.error_code != code {
            let name = |code: &Option<ErrorCode>| code.as_ref().map_or("absent".to_owned(), ToString::to_string);
            let detail = format!("errorCode is {}, the error event's is {}", name(&result.error_code), name(&code));
            self.violate(Rule::ErrorCodeOfResult, event, detail);
        }
        if result.aborted && !(result.is_error && result.error_code == Some(ErrorCode::Aborted)) {
            self.violate(Rule::AbortedIsAnError, event, String::new());
        }
    }

    fn no_open_tools(&mut self, kind: &'static str, at: Option<usize>) {
        let mut open: Vec<_> = self.open_tools.drain().collect();
        open.sort_by_key(|(_, at)| *at);
        self.violations.extend(open.into_iter().map(|(id, used)| Violation {
            rule: Rule::OneResultForEachUse,
            at,
            kind,
            detail: format!("call {} of event {used} has none", id.escaped()),
        }));
    }

    fn violate(&mut self, rule: Rule, event: &Event, detail: String) {
        self.violations.push(Violation { rule, at: Some(self.count), kind: rule::kind(event), detail });
    }
}
