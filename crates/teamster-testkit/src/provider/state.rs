//! The state of a running provider: its scenario, the requests, the sent replies and the gates.
//!
//! It is kept in watch channels, so that a test can wait for any change without polling.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tokio::sync::watch;

use super::failure::HttpError;
use super::record::{Disconnect, Message, ModelRequest, SideRequest};
use super::reply::{Reply, Turn, TurnKind};
use super::scenario::Scenario;
use super::usage::Usage;

#[derive(Debug)]
pub(crate) struct ProviderState {
    scenario: Scenario,
    log: watch::Sender<Log>,
    gates: watch::Sender<BTreeMap<String, GateState>>,
    ids: Ids,
}

/// Everything that has happened so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) requests: Vec<Arc<ModelRequest>>,
    pub(crate) side_requests: Vec<Arc<SideRequest>>,
    pub(crate) usage: Vec<(Arc<ModelRequest>, Usage)>,
    pub(crate) disconnects: Vec<Disconnect>,
    attempts: HashMap<(String, usize), usize>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GateState {
    pub(crate) reached: bool,
    pub(crate) open: bool,
}

/// Creates ids that are unique within a provider.
#[derive(Debug, Default)]
pub(crate) struct Ids(AtomicU64);

impl Ids {
    pub(crate) fn next(&self, prefix: &str) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{prefix}testkit{number:06}")
    }
}

/// The head of an HTTP request.
#[derive(Debug, Clone)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
}

/// A model request, as a wire format parsed it.
#[derive(Debug)]
pub(crate) struct ParsedRequest {
    pub(crate) model: String,
    pub(crate) system: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) tool_names: Vec<String>,
    pub(crate) stream: bool,
    pub(crate) body: Value,
}

/// The response to send.
#[derive(Debug)]
pub(crate) enum Answer {
    Reply(Box<Reply>),
    Error(HttpError),
}

impl ProviderState {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self { scenario, log: watch::Sender::default(), gates: watch::Sender::default(), ids: Ids::default() }
    }

    pub(crate) fn ids(&self) -> &Ids {
        &self.ids
    }

    pub(crate) fn log(&self) -> &watch::Sender<Log> {
        &self.log
    }

    pub(crate) fn gates(&self) -> &watch::Sender<BTreeMap<String, GateState>> {
        &self.gates
    }

    /// Records a request and selects its response.
    pub(crate) fn accept(self: &Arc<Self>, head: RequestHead, parsed: ParsedRequest) -> (PendingResponse, Answer) {
        let choice = self.scenario.choose(&parsed.messages);
        let mut request = Arc::new(ModelRequest {
            number: 0,
            path: head.path,
            headers: head.headers,
            body: parsed.body,
            model: parsed.model,
            system: parsed.system,
            messages: parsed.messages,
            tool_names: parsed.tool_names,
            stream: parsed.stream,
            branch: choice.branch,
            turn: choice.turn,
            attempt: 0,
        });
        self.log.send_modify(|log| {
            let place = (request.branch.clone(), choice.index);
            let attempt = log.attempts.entry(place).or_default();
            *attempt += 1;
            let numbered = Arc::make_mut(&mut request);
            numbered.attempt = *attempt;
            numbered.number = log.requests.len() + 1;
            log.requests.push(Arc::clone(&request));
        });
        let answer = match choice.result {
            Ok(turn) => resolve(turn.clone(), &request),
            Err(why) => Answer::Error(HttpError::bad_request(why)),
        };
        let pending = PendingResponse { state: Arc::clone(self), request, deltas: 0, complete: false };
        (pending, answer)
    }

    pub(crate) fn record_side_request(&self, head: RequestHead, body: Vec<u8>) {
        let request = Arc::new(SideRequest { method: head.method, path: head.path, headers: head.headers, body });
        self.log.send_modify(|log| log.side_requests.push(request));
    }

    /// Marks the gate as reached, and waits until it is open.
    pub(crate) async fn wait_at_gate(&self, name: &str) {
        let mut gates = self.gates.subscribe();
        self.gates.send_modify(|gates| gates.entry(name.to_owned()).or_default().reached = true);
        // `self` owns the sender, so the wait ends only when the gate opens.
        let _opened = gates.wait_for(|gates| gates.get(name).is_some_and(|gate| gate.open)).await;
    }
}

fn resolve(mut turn: Turn, request: &ModelRequest) -> Answer {
    loop {
        turn = match turn.0 {
            TurnKind::Error(error) => return Answer::Error(error),
            TurnKind::Computed(compute) => compute(request),
            TurnKind::Reply(reply) => match reply.override_for(request.attempt) {
                Some(other) => other.clone(),
                None => return Answer::Reply(reply),
            },
        };
    }
}

/// A response in progress. If it is dropped before it is complete, it records that the client
/// disconnected.
#[derive(Debug)]
pub(crate) struct PendingResponse {
    state: Arc<ProviderState>,
    request: Arc<ModelRequest>,
    deltas: usize,
    complete: bool,
}

impl PendingResponse {
    pub(crate) fn state(&self) -> &Arc<ProviderState> {
        &self.state
    }

    pub(crate) fn request(&self) -> &ModelRequest {
        &self.request
    }

    pub(crate) fn deltas(&self) -> usize {
        self.deltas
    }

    pub(crate) fn count_delta(&mut self) {
        self.deltas += 1;
    }

    pub(crate) fn report_usage(&self, usage: Usage) {
        self.state.log.send_modify(|log| log.usage.push((Arc::clone(&self.request), usage)));
    }

    /// Marks the response as complete: the provider has sent everything.
    pub(crate) fn complete(&mut self) {
        self.complete = true;
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if self.complete {
            return;
        }
        let disconnect = Disconnect { request: self.request.number, deltas: self.deltas };
        self.state.log.send_modify(|log| log.disconnects.push(disconnect));
    }
}
