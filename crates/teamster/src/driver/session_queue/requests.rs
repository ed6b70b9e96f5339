//! The agent's open requests in a turn of a session.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use teamster_agents::rules::ToolRules;
use teamster_types::event::{AnsweredBy, Event, RequestId};
use teamster_types::request::{Answer, PermissionMode};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use crate::driver::answers::{GivenAnswer, OpenRequest, deadline, request_of};
use crate::events::size;
use crate::permits::Ticket;
use crate::session::{AnswerError, Handler};
use crate::setup::path_resolver::DiskPathResolver;

/// The maximum number of open requests. Further ones are denied at once.
const MAX_OPEN: usize = 1000;

/// The maximum size of the open requests in bytes, estimated. Protocols keep the inputs of the requests.
const MAX_OPEN_BYTES: usize = 16 << 20;

/// The agent's open requests.
pub(super) struct Requests {
    rules: ToolRules,
    open: BTreeMap<RequestId, OpenRequest>,
    /// Answers that wait until the turn has its place in the queue again.
    held: VecDeque<GivenAnswer>,
    handler: Option<Handler>,
    /// Running calls of the handler.
    calls: JoinSet<Answer>,
    /// The request of each call.
    called_for: HashMap<Id, RequestId>,
}

impl Requests {
    pub(super) fn new(rules: ToolRules, handler: Option<Handler>) -> Self {
        let (open, held, calls, called_for) = (BTreeMap::new(), VecDeque::new(), JoinSet::new(), HashMap::new());
        Self { rules, open, held, handler, calls, called_for }
    }

    /// Replaces the rules for later requests.
    pub(super) fn set_rules(&mut self, rules: ToolRules) {
        self.rules = rules;
    }

    /// Returns the answer of the rules to a request. A request beyond the limits is denied.
    pub(super) fn answer_by_rule(&self, event: &Event, mode: PermissionMode) -> Option<GivenAnswer> {
        if let Some(request) = request_of(event)
            && self.is_full(size::in_memory(event))
        {
            let reason = format!("More than {MAX_OPEN} requests wait for an answer, or they are too large.");
            let denial = GivenAnswer::deny(request.clone(), &reason, AnsweredBy::Limit);
            return Some(denial.without_request(event));
        }
        let Event::PermissionRequest(request) = event else { return None };
        let (tool, server, input) = (&request.tool_name, request.server.as_deref(), &request.input);
        // `None` if the rules require the caller's answer.
        let answer = self.rules.verdict_on(mode, tool, server, input, &DiskPathResolver)?.answer()?;
        let answer = GivenAnswer::new(request.request_id.clone(), answer, AnsweredBy::Rule);
        Some(answer.without_request(event))
    }

    /// Whether another request of this size exceeds the limits. A single request never exceeds the limit on the size.
    fn is_full(&self, bytes: usize) -> bool {
        let waiting: usize = self.open.values().map(OpenRequest::bytes).sum();
        self.open.len() >= MAX_OPEN || (waiting > 0 && waiting.saturating_add(bytes) > MAX_OPEN_BYTES)
    }

    /// Opens a request, if the event is one, and calls the handler. Sets the deadline in the event.
    pub(super) fn open(&mut self, event: &mut Event, limit: Duration, ticket: &mut Ticket) {
        let Some(request) = request_of(event).cloned() else { return };
        if let Event::PermissionRequest(request) = event {
            request.deadline = deadline(limit);
        }
        self.forget_calls(&request);
        self.open.insert(request.clone(), OpenRequest::new(event, limit));
        // Other turns may run while a person decides.
        ticket.release();
        if let Some(handler) = &self.handler {
            let (handler, event) = (Arc::clone(handler), event.clone());
            let task = self.calls.spawn(async move { handler(event).await });
            self.called_for.insert(task.id(), request);
        }
    }

    /// Waits for the next answer of the handler. `None` if its request is closed. Waits forever if the handler is not running.
    /// Cancel safe.
    pub(super) async fn next_handled(&mut self) -> Option<GivenAnswer> {
        match self.calls.join_next_with_id().await {
            Some(handled) => self.take_handled(handled),
            None => std::future::pending().await,
        }
    }

    fn take_handled(&mut self, handled: Result<(Id, Answer), JoinError>) -> Option<GivenAnswer> {
        let (id, answer) = match handled {
            Ok((id, answer)) => (id, answer),
            Err(panicked) => (panicked.id(), Answer::Deny { message: Some("The handler panicked.".to_owned()) }),
        };
        let request = self.called_for.remove(&id)?;
        let open = self.open.remove(&request)?;
        let answer = if open.lists(&answer) {
            answer
        } else {
            Answer::Deny { message: Some("The handler chose an option that the request does not list.".to_owned()) }
        };
        Some(open.answered(request, answer, AnsweredBy::Handler))
    }

    /// Takes the caller's answer to a request.
    ///
    /// # Errors
    /// The request is not open, or does not list the chosen option.
    pub(super) fn take_answer(&mut self, request: RequestId, answer: Answer) -> Result<GivenAnswer, AnswerError> {
        let Some(open) = self.open.get(&request) else { return Err(AnswerError::NotWaiting { request }) };
        if let Answer::Option { option_id } = &answer
            && !open.lists(&answer)
        {
            return Err(AnswerError::UnknownOption { option_id: option_id.clone(), listed: open.options(), request });
        }
        let open = self.open.remove(&request).unwrap_or_default();
        self.forget_calls(&request);
        Ok(open.answered(request, answer, AnsweredBy::Caller))
    }

    /// Returns an answer that the agent gets now. Holds the answer to the last open request until the turn has its place again.
    pub(super) fn hold_or_pass(&mut self, answer: GivenAnswer, ticket: &mut Ticket) -> Option<GivenAnswer> {
        if self.open.is_empty() && ticket.is_away() {
            ticket.requeue();
            self.held.push_back(answer);
            return None;
        }
        Some(answer)
    }

    /// Takes the next held answer, if the agent may have it now.
    pub(super) fn next_held(&mut self, ticket: &Ticket) -> Option<GivenAnswer> {
        if ticket.is_away() && self.open.is_empty() {
            return None;
        }
        self.held.pop_front()
    }

    /// Removes a request that the agent has withdrawn.
    pub(super) fn withdraw(&mut self, request: &RequestId, ticket: &mut Ticket) {
        self.forget_calls(request);
        let held = self.held.len();
        self.held.retain(|given| given.request != *request);
        let was_held = self.held.len() < held;
        // The agent works already, so the turn takes its place at once.
        if (self.open.remove(request).is_some() || was_held) && !self.is_open() {
            ticket.reacquire_now();
        }
    }

    /// Removes all requests, and aborts the calls of the handler. Returns the requests.
    pub(super) fn clear(&mut self) -> Vec<RequestId> {
        self.calls.abort_all();
        self.called_for.clear();
        let held = std::mem::take(&mut self.held).into_iter().map(|given| given.request);
        std::mem::take(&mut self.open).into_keys().chain(held).collect()
    }

    /// Whether a request is open or its answer is held.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty() || !self.held.is_empty()
    }

    /// Returns the first deadline of the open requests.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.values().filter_map(OpenRequest::deadline).min()
    }

    /// Removes and returns the requests whose deadline has passed.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<RequestId> {
        let overdue = self.open.extract_if(.., |_, open| open.deadline().is_some_and(|until| until <= now));
        let overdue: Vec<_> = overdue.map(|(id, _)| id).collect();
        for request in &overdue {
            self.forget_calls(request);
        }
        overdue
    }

    /// Makes late answers of the handler to this request void. An agent may use the id again.
    fn forget_calls(&mut self, request: &RequestId) {
        self.called_for.retain(|_, called_for| called_for != request);
    }
}
