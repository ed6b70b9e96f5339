//! What one running provider knows: its scenario, who asked what, what was sent, which gates are open.
//!
//! All of it sits in watch channels, so that a test can wait for any of it without polling.

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
pub(crate) struct Stage {
    scenario: Scenario,
    log: watch::Sender<Log>,
    gates: watch::Sender<BTreeMap<String, GateState>>,
    ids: Ids,
}

/// What has happened so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) requests: Vec<Arc<ModelRequest>>,
    pub(crate) side_requests: Vec<Arc<SideRequest>>,
    pub(crate) usage: Vec<(Arc<ModelRequest>, Usage)>,
    pub(crate) disconnects: Vec<Disconnect>,
    asked: HashMap<(String, usize), usize>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GateState {
    pub(crate) reached: bool,
    pub(crate) open: bool,
}

/// Ids that are unique within a provider.
#[derive(Debug, Default)]
pub(crate) struct Ids(AtomicU64);

impl Ids {
    pub(crate) fn next(&self, prefix: &str) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{prefix}testkit{number:06}")
    }
}

/// What stands at the head of an HTTP request.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
}

/// A request for an answer, as a wire protocol understood it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) system: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) tool_names: Vec<String>,
    pub(crate) stream: bool,
    pub(crate) body: Value,
}

/// What is to be said.
#[derive(Debug)]
pub(crate) enum Line {
    Reply(Box<Reply>),
    Error(HttpError),
}

impl Stage {
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

    /// Records a request and finds what answers it.
    pub(crate) fn ask(self: &Arc<Self>, head: Head, asked: Asked) -> (Underway, Line) {
        let choice = self.scenario.choose(&asked.messages);
        let mut request = Arc::new(ModelRequest {
            number: 0,
            path: head.path,
            headers: head.headers,
            body: asked.body,
            model: asked.model,
            system: asked.system,
            messages: asked.messages,
            tool_names: asked.tool_names,
            stream: asked.stream,
            branch: choice.branch,
            turn: choice.turn,
            attempt: 0,
        });
        self.log.send_modify(|log| {
            let place = (request.branch.clone(), choice.index);
            let attempts = log.asked.entry(place).or_default();
            *attempts += 1;
            let numbered = Arc::make_mut(&mut request);
            numbered.attempt = *attempts;
            numbered.number = log.requests.len() + 1;
            log.requests.push(Arc::clone(&request));
        });
        let line = match choice.what {
            Ok(turn) => resolve(turn.clone(), &request),
            Err(why) => Line::Error(HttpError::bad_request(why)),
        };
        let underway = Underway { stage: Arc::clone(self), request, deltas: 0, over: false };
        (underway, line)
    }

    pub(crate) fn record_side_request(&self, head: Head, body: Vec<u8>) {
        let request = Arc::new(SideRequest { method: head.method, path: head.path, headers: head.headers, body });
        self.log.send_modify(|log| log.side_requests.push(request));
    }

    /// Marks the gate as reached, and waits until it is open.
    pub(crate) async fn pass_gate(&self, name: &str) {
        let mut gates = self.gates.subscribe();
        self.gates.send_modify(|gates| gates.entry(name.to_owned()).or_default().reached = true);
        // The sender is `self`, so waiting only ends by the gate.
        let _opened = gates.wait_for(|gates| gates.get(name).is_some_and(|gate| gate.open)).await;
    }
}

fn resolve(mut turn: Turn, request: &ModelRequest) -> Line {
    loop {
        turn = match turn.0 {
            TurnKind::Error(error) => return Line::Error(error),
            TurnKind::Computed(compute) => compute(request),
            TurnKind::Reply(reply) => match reply.stand_in(request.attempt) {
                Some(stand_in) => stand_in.clone(),
                None => return Line::Reply(reply),
            },
        };
    }
}

/// An answer on its way. Dropped before it is over, it records that the client went away.
#[derive(Debug)]
pub(crate) struct Underway {
    stage: Arc<Stage>,
    request: Arc<ModelRequest>,
    deltas: usize,
    over: bool,
}

impl Underway {
    pub(crate) fn stage(&self) -> &Arc<Stage> {
        &self.stage
    }

    pub(crate) fn request(&self) -> &ModelRequest {
        &self.request
    }

    pub(crate) fn deltas(&self) -> usize {
        self.deltas
    }

    pub(crate) fn sent_delta(&mut self) {
        self.deltas += 1;
    }

    pub(crate) fn told_usage(&self, usage: Usage) {
        self.stage.log.send_modify(|log| log.usage.push((Arc::clone(&self.request), usage)));
    }

    /// The provider has sent all that it meant to send.
    pub(crate) fn over(&mut self) {
        self.over = true;
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let disconnect = Disconnect { request: self.request.number, deltas: self.deltas };
        self.stage.log.send_modify(|log| log.disconnects.push(disconnect));
    }
}
