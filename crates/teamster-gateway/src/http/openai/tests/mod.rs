//! The OpenAI-compatible API, with turns that the test runs through the store.

mod requests;
mod streams;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream, to_bytes};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use futures::StreamExt as _;
use serde_json::{Value, json};
use teamster::Runtime;
use teamster_store::{
    AttemptEnd, Claim, ClaimRequest, ConversationFilter, Day, Effects, EndState, Finish, HandBack, HandBackKind,
    HostId, Json, MemoryStore, NewEvent, PageRequest, Progress, SessionChange, Timestamp, Turn, TurnId, TurnState,
    Usage, UsageEntry, WorkerId,
};
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

use crate::access::{Identity, Scope};
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::{Gateway, Parts};

/// No step of a test takes longer.
const LIMIT: Duration = Duration::from_secs(20);

struct Fixture {
    gateway: Gateway,
    app: Router,
    _directory: tempfile::TempDir,
}

fn fixture() -> Fixture {
    with(|_| {})
}

fn with(change: impl FnOnce(&mut Config)) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config { data_dir: directory.path().to_owned(), ..Config::default() };
    change(&mut config);
    let gateway = Gateway::new(Parts {
        config,
        store: Arc::new(MemoryStore::new()),
        runtime: Arc::new(Runtime::new()),
        channels: Vec::new(),
        host: HostId::new("host"),
        clock: Clock::system(),
    });
    Fixture { app: super::router(gateway.clone()), gateway, _directory: directory }
}

/// Returns a gateway that waits a moment only for clients that do not read.
fn impatient() -> Fixture {
    let fixture = with(|config| config.timing.heartbeat = Duration::from_millis(5));
    let app = super::handlers::build(fixture.gateway.clone(), Duration::from_millis(50));
    Fixture { app, ..fixture }
}

impl Fixture {
    async fn send(&self, body: &Value) -> Response {
        self.send_with(body, &[]).await
    }

    async fn send_with(&self, body: &Value, headers: &[(&str, &str)]) -> Response {
        self.send_scoped(body, headers, &[Scope::Send, Scope::Read]).await
    }

    async fn send_scoped(&self, body: &Value, headers: &[(&str, &str)], scopes: &[Scope]) -> Response {
        let mut request = Request::post("/v1/chat/completions").header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let identity = Identity { token: None, owner: "ada".to_owned(), scopes: scopes.to_vec() };
        let request = request.extension(identity).body(Body::from(body.to_string())).unwrap();
        self.app.clone().oneshot(request).await.unwrap()
    }

    /// Claims the next turn, as a worker does, and starts its attempt.
    async fn claim(&self) -> Running<'_> {
        let request = ClaimRequest {
            worker: WorkerId::new("worker"),
            host: HostId::new("host"),
            lease_for: LIMIT,
            max_running: 100,
            max_running_per_chat: 100,
            affinity: Duration::ZERO,
        };
        let claim = eventually(async || self.store().claim(request.clone(), self.gateway.now()).await.unwrap()).await;
        let running = Running { fixture: self, claim };
        running.start().await;
        running
    }

    fn store(&self) -> &dyn teamster_store::Store {
        self.gateway.store()
    }

    async fn turn(&self, id: TurnId) -> Turn {
        self.store().turn(id).await.unwrap().unwrap()
    }

    /// Returns the turns of all conversations.
    async fn turns(&self) -> Vec<Turn> {
        let (filter, page) = (ConversationFilter::default(), PageRequest::first(100));
        let found = self.store().conversations(filter, page.clone(), self.gateway.now()).await.unwrap();
        let mut turns = Vec::new();
        for conversation in found.items {
            turns.extend(self.store().turns(conversation.id, page.clone()).await.unwrap().items);
        }
        turns
    }

    async fn wait_for(&self, state: TurnState) {
        eventually(async || self.turns().await.iter().any(|turn| turn.state == state).then_some(())).await;
    }
}

/// A turn that a worker runs.
struct Running<'a> {
    fixture: &'a Fixture,
    claim: Claim,
}

impl Running<'_> {
    async fn start(&self) {
        let attempt = self.claim.turn.attempts + 1;
        let event = self.event("turn_started", json!({ "attempt": attempt, "agent": "claude", "worker": "worker" }));
        let effects = Effects::events(vec![event]);
        self.fixture.store().start_attempt(self.claim.lease, effects, self.now()).await.unwrap();
        self.announce();
    }

    async fn emit(&self, kind: &str, fields: Value) {
        let effects = Effects::events(vec![self.event(kind, fields)]);
        self.fixture.store().append(self.claim.lease, Progress::Text, effects, self.now()).await.unwrap();
        self.announce();
    }

    async fn text(&self, message: &str, text: &str) {
        self.emit("text", json!({ "text": text, "messageId": message })).await;
    }

    async fn finish(self, state: EndState, error: Option<(&str, &str)>) {
        let name = match state {
            EndState::Done => "done",
            EndState::Failed => "failed",
            EndState::Aborted => "aborted",
        };
        let mut fields = json!({ "state": name });
        if let Some((code, message)) = error {
            fields["errorCode"] = code.into();
            fields["error"] = message.into();
        }
        let finish = Finish {
            state,
            result: None,
            error_code: error.map(|(code, _)| code.to_owned()),
            attempt: Self::end(vec![self.event("turn_finished", fields)]),
        };
        self.fixture.store().finish(self.claim.lease, finish, self.now()).await.unwrap();
        self.announce();
    }

    async fn retry(self) {
        let event = self.event("turn_retrying", json!({ "attempt": 1, "delayMs": 0, "code": "CONNECTION" }));
        let hand_back = HandBack { kind: HandBackKind::Retry(self.now()), attempt: Self::end(vec![event]) };
        self.fixture.store().hand_back(self.claim.lease, hand_back, self.now()).await.unwrap();
        self.announce();
    }

    fn end(events: Vec<NewEvent>) -> AttemptEnd {
        let usage = Usage { input_tokens: 7, output_tokens: 5, cost_micros: 0 };
        AttemptEnd {
            session: SessionChange::Keep,
            usage: Some(UsageEntry { day: Day::new(1), agent: "claude".to_owned(), usage }),
            closings: Vec::new(),
            effects: Effects::events(events),
        }
    }

    fn event(&self, kind: &str, mut fields: Value) -> NewEvent {
        fields["type"] = kind.into();
        let turn = Some(self.claim.lease.turn);
        NewEvent { kind: kind.to_owned(), turn, at: self.now(), body: Json::of(&fields).unwrap() }
    }

    fn announce(&self) {
        self.fixture.gateway.announce_growth(self.claim.lease.conversation);
    }

    fn now(&self) -> Timestamp {
        self.fixture.gateway.now()
    }
}

/// The chunks of a stream.
struct Chunks {
    body: BodyDataStream,
    text: String,
}

impl Chunks {
    fn of(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Self { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// Returns the data of the next event. `None` at the end.
    async fn next_text(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.strip_prefix("data: ").expect("an event has data and nothing else").to_owned();
                assert!(!data.contains('\n'));
                self.text = rest.to_owned();
                return Some(data);
            }
            let bytes = timeout(LIMIT, self.body.next()).await.expect("the stream is silent")?.unwrap();
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_text().await.expect("the stream has ended")).unwrap()
    }

    /// Reads to the end.
    async fn rest(mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(text) = self.next_text().await {
            all.push(text);
        }
        all
    }
}

async fn json_of(response: Response) -> Value {
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

async fn eventually<T>(check: impl AsyncFn() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, wait).await.expect("it has not happened in time")
}

fn ask(stream: bool) -> Value {
    json!({ "model": "claude", "stream": stream, "messages": [{ "role": "user", "content": "Hello" }] })
}
