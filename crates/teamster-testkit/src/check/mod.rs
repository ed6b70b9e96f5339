//! The rules of an event stream, checked from outside: what every run of every agent keeps, whatever the agent did.
//!
//! ```
//! use teamster_protocol::event::{Done, Event, RunResult};
//! use teamster_testkit::check::check;
//!
//! let done = Event::Done(Box::new(Done { result: RunResult::default() }));
//! assert!(check(&[done.clone()]).is_ok());
//! let violations = check(&[done.clone(), done]).unwrap_err();
//! assert_eq!(violations[0].to_string(), "event 1 (done): done is the last event: it follows another done");
//! ```
//!
//! [`check`] takes a whole stream, a [`Checker`] one event after the other, and [`check_ndjson`] the text that a program
//! printed. What they find is data: the rule, and the event that broke it.
//!
//! Invariant: the rules stand here a second time, apart from the code that keeps them in a run, so that a fault there
//! is seen here.

mod ndjson;
mod rule;
#[cfg(test)]
mod tests;
mod told;

use std::collections::{HashMap, HashSet};

use teamster_protocol::event::{ErrorCode, Event, MessageId, PermissionAnswered, RequestId, RunResult, ToolId};

pub use ndjson::check_ndjson;
pub use rule::{Rule, Violation};
use told::Told;

/// Checks a whole stream.
///
/// # Errors
/// Everything that is wrong with it, in the order in which it shows.
pub fn check(events: &[Event]) -> Result<(), Vec<Violation>> {
    let mut checker = Checker::new();
    for event in events {
        checker.push(event);
    }
    checker.finish()
}

/// Checks a stream while it flows.
#[derive(Debug, Default)]
pub struct Checker {
    /// How many events have been pushed.
    seen: usize,
    init_seen: bool,
    /// The first event that only an agent that is already known can have caused.
    at_work: Option<usize>,
    told: Told,
    /// Calls without a result, with the event that made each.
    open_tools: HashMap<ToolId, usize>,
    closed_tools: HashSet<ToolId>,
    /// Permission requests without an answer, with the event that made each.
    open_requests: HashMap<RequestId, usize>,
    answered_requests: HashSet<RequestId>,
    /// What the `error` event said.
    error: Option<ErrorCode>,
    done: bool,
    violations: Vec<Violation>,
}

impl Checker {
    /// Nothing seen so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
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
                self.at_work.get_or_insert(self.seen);
                if delta.text.is_empty() {
                    self.violate(Rule::NoEmptyDelta, event, format!("of message {}", delta.message_id.escaped()));
                }
                self.told.delta(delta, matches!(event, Event::Text(_)));
            }
            Event::Retract(retract) => self.retract(event, &retract.message_id),
            Event::ToolUse(tool) => self.tool_use(event, &tool.tool_id),
            Event::ToolResult(result) => self.tool_result(event, &result.tool_id),
            Event::PermissionRequest(request) => self.asked(event, &request.request_id),
            Event::PermissionAnswered(answered) => self.answered(event, answered),
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
        self.seen += 1;
    }

    /// What is wrong so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// Everything that was wrong with it, in the order in which it showed.
    pub fn finish(mut self) -> Result<(), Vec<Violation>> {
        if !self.done {
            let detail = format!("the stream ended after {} events", self.seen);
            self.violations.push(Violation { rule: Rule::OneDone, at: None, kind: "", detail });
            self.no_open_requests("", None);
            self.no_open_tools("", None);
        }
        if self.violations.is_empty() { Ok(()) } else { Err(self.violations) }
    }

    fn init(&mut self, event: &Event) {
        if self.init_seen {
            self.violate(Rule::OneInit, event, String::new());
        } else if let Some(at) = self.at_work {
            self.violate(Rule::InitFirst, event, format!("event {at} stands before it"));
        }
        self.init_seen = true;
    }

    fn retract(&mut self, event: &Event, id: &MessageId) {
        if !self.told.retract(id) {
            self.violate(Rule::RetractNamesWhatWasTold, event, format!("message {}", id.escaped()));
        }
    }

    fn tool_use(&mut self, event: &Event, id: &ToolId) {
        self.at_work.get_or_insert(self.seen);
        if self.open_tools.contains_key(id) || self.closed_tools.contains(id) {
            self.violate(Rule::ToolUseOnce, event, format!("call {}", id.escaped()));
        } else {
            self.open_tools.insert(id.clone(), self.seen);
        }
    }

    fn tool_result(&mut self, event: &Event, id: &ToolId) {
        self.at_work.get_or_insert(self.seen);
        if self.open_tools.remove(id).is_some() {
            self.closed_tools.insert(id.clone());
        } else if self.closed_tools.contains(id) {
            self.violate(Rule::OneResultForEachUse, event, format!("call {} has another", id.escaped()));
        } else {
            self.violate(Rule::UseBeforeResult, event, format!("call {}", id.escaped()));
        }
    }

    fn asked(&mut self, event: &Event, id: &RequestId) {
        if self.open_requests.insert(id.clone(), self.seen).is_some() {
            self.violate(Rule::RequestOnce, event, format!("request {}", id.escaped()));
        }
    }

    fn answered(&mut self, event: &Event, answered: &PermissionAnswered) {
        let id = &answered.request_id;
        let waited = self.open_requests.remove(id).is_some();
        let detail = |what: &str| format!("request {}{what}", id.escaped());
        if waited && answered.request.is_some() {
            self.violate(Rule::RequestBeforeAnswer, event, detail(" is said again"));
        } else if !waited && answered.request.is_none() {
            let rule = if self.answered_requests.contains(id) {
                Rule::OneAnswerForEachRequest
            } else {
                Rule::RequestBeforeAnswer
            };
            self.violate(rule, event, detail(""));
        } else if answered.request.as_ref().is_some_and(|request| request.request_id != *id) {
            self.violate(Rule::RequestBeforeAnswer, event, detail(" contains another one"));
        }
        self.answered_requests.insert(id.clone());
    }

    fn no_open_requests(&mut self, kind: &'static str, at: Option<usize>) {
        let mut open: Vec<_> = self.open_requests.drain().collect();
        open.sort_by_key(|(_, at)| *at);
        self.violations.extend(open.into_iter().map(|(id, asked)| Violation {
            rule: Rule::OneAnswerForEachRequest,
            at,
            kind,
            detail: format!("request {} of event {asked} has none", id.escaped()),
        }));
    }

    fn result(&mut self, event: &Event, result: &RunResult) {
        self.no_open_requests(rule::kind(event), Some(self.seen));
        self.no_open_tools(rule::kind(event), Some(self.seen));
        // A text that is too long lacks as much of its beginning as the result says.
        let missing = usize::try_from(result.text_missing_bytes).unwrap_or(usize::MAX);
        let whole = self.told.text();
        let expected = whole.get(missing..).unwrap_or_default();
        if result.text != *expected || result.text_truncated != (missing > 0) {
            self.violate(Rule::ResultText, event, rule::differ(&result.text, expected));
        }
        let last = self.told.final_text();
        let kept = last.len().min(expected.len());
        let expected = last.get(last.len() - kept..).unwrap_or_default();
        if result.final_text != expected {
            let detail = rule::differ(&result.final_text, expected);
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
        self.violations.push(Violation { rule, at: Some(self.seen), kind: rule::kind(event), detail });
    }
}
