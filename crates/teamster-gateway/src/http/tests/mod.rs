//! The API over both stores, called in the process and over sockets.

mod app;
mod conversations;
mod messages;
mod operator;
mod permissions;
mod problems;
mod schedules;
mod snapshot;
mod streams;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::{Extension, Router};
use serde_json::{Value, json};
use teamster::Runtime;
use teamster_store::{
    AttemptEnd, ClaimRequest, Effects, EndState, Finish, HostId, Json, Lease, MemoryStore, NewEvent, Progress,
    SessionChange, SqliteOptions, SqliteStore, Store, TokenId, TurnId, UsageEntry, WorkerId,
};
use tower::ServiceExt as _;
use uuid::Uuid;

use super::{Protection, ProtectionOptions, routing, tokens};
use crate::access::{Identity, Scope};
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::{Gateway, Parts};

/// A gateway whose worker is the test.
pub(super) struct World {
    pub(super) gateway: Gateway,
    pub(super) store: Arc<dyn Store>,
    routes: Router,
    identity: Identity,
    directory: Arc<tempfile::TempDir>,
}

/// A response.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) bytes: Vec<u8>,
}

impl World {
    /// Returns a gateway for each store.
    pub(super) async fn all() -> [Self; 2] {
        [Self::memory(|_| {}), Self::sqlite().await]
    }

    pub(super) fn memory(configure: impl FnOnce(&mut Config)) -> Self {
        Self::new(Arc::new(tempfile::tempdir().unwrap()), Arc::new(MemoryStore::new()), configure)
    }

    pub(super) async fn sqlite() -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let store = SqliteStore::open(directory.path().join("store.db"), SqliteOptions::default()).await.unwrap();
        Self::new(directory, Arc::new(store), |_| {})
    }

    fn new(directory: Arc<tempfile::TempDir>, store: Arc<dyn Store>, configure: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config { data_dir: directory.path().to_owned(), ..Config::default() };
        config.turn.directory = directory.path().to_owned();
        config.timing.heartbeat = Duration::from_millis(200);
        configure(&mut config);
        let gateway = Gateway::new(Parts {
            config,
            store: Arc::clone(&store),
            runtime: Arc::new(Runtime::new()),
            channels: Vec::new(),
            host: HostId::new("host"),
            clock: Clock::system(),
        });
        let options = ProtectionOptions { listen: gateway.config().listen, fixed_token: None };
        let protection = Protection::new(gateway.clone(), options).unwrap();
        let built = routing::build(gateway.clone(), tokens::router(protection), Duration::from_millis(300));
        let token = TokenId::new(Uuid::now_v7());
        let identity = Identity { token: Some(token), owner: "alice".to_owned(), scopes: vec![Scope::Admin] };
        Self { gateway, store, routes: built.protected.merge(built.open), identity, directory }
    }

    /// Returns the same gateway for another caller.
    pub(super) fn as_caller(&self, owner: &str, scopes: &[Scope]) -> Self {
        let token = Some(TokenId::new(Uuid::now_v7()));
        let identity = Identity { token, owner: owner.to_owned(), scopes: scopes.to_vec() };
        Self {
            gateway: self.gateway.clone(),
            store: Arc::clone(&self.store),
            routes: self.routes.clone(),
            identity,
            directory: Arc::clone(&self.directory),
        }
    }

    pub(super) const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Returns the router with this caller.
    pub(super) fn router(&self) -> Router {
        self.routes.clone().layer(Extension(self.identity.clone()))
    }

    pub(super) async fn request(&self, request: Request<Body>) -> Reply {
        let response = self.router().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = tokio::time::timeout(Duration::from_secs(20), axum::body::to_bytes(body, usize::MAX)).await;
        let bytes = bytes.expect("the response does not end").unwrap().to_vec();
        Reply { status: parts.status, headers: parts.headers, bytes }
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        self.request(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(super) async fn call(&self, method: Method, path: &str, body: Value) -> Reply {
        self.call_with(method, path, body, &[]).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Reply {
        self.call(Method::POST, path, body).await
    }

    pub(super) async fn call_with(&self, method: Method, path: &str, body: Value, headers: &[(&str, &str)]) -> Reply {
        let mut request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.request(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// Creates a conversation, and returns its id.
    pub(super) async fn conversation(&self) -> String {
        let reply = self.post("/v1/conversations", json!({})).await.json(StatusCode::CREATED);
        reply["id"].as_str().unwrap().to_owned()
    }

    /// Sends a message, and returns its turn.
    pub(super) async fn message(&self, conversation: &str, text: &str) -> String {
        let path = format!("/v1/conversations/{conversation}/messages");
        let reply = self.post(&path, json!({ "text": text })).await.json(StatusCode::ACCEPTED);
        reply["turnId"].as_str().unwrap().to_owned()
    }

    /// Claims the next turn and starts an attempt.
    pub(super) async fn claim(&self) -> Lease {
        let request = ClaimRequest {
            worker: WorkerId::new("worker"),
            host: HostId::new("host"),
            lease_for: Duration::from_mins(1),
            max_running: 10,
            max_running_per_chat: 10,
            affinity: Duration::ZERO,
        };
        let claim = self.store.claim(request, self.gateway.now()).await.unwrap().expect("a turn waits");
        self.store.start_attempt(claim.lease, Effects::default(), self.gateway.now()).await.unwrap();
        claim.lease
    }

    /// Appends events of the running turn, with an announcement or without one.
    pub(super) async fn append(&self, lease: Lease, events: &[Value], announce: bool) {
        let events = events.iter().map(|event| self.event(lease.turn, event)).collect();
        let effects = Effects::events(events);
        self.store.append(lease, Progress::Text, effects, self.gateway.now()).await.unwrap();
        if announce {
            self.gateway.announce_growth(lease.conversation);
        }
    }

    fn event(&self, turn: TurnId, event: &Value) -> NewEvent {
        let kind = event["type"].as_str().unwrap().to_owned();
        NewEvent { kind, turn: Some(turn), at: self.gateway.now(), body: Json::of(event).unwrap() }
    }

    /// Ends the running turn with this text, or with an error.
    pub(super) async fn finish(&self, lease: Lease, end: Result<&str, &str>) {
        let (state, name, text, code) = match end {
            Ok(text) => (EndState::Done, "done", text, None),
            Err(code) => (EndState::Failed, "failed", "", Some(code.to_owned())),
        };
        let mut result = json!({ "text": format!("So. {text}"), "finalText": text, "durationMs": 5, "isError": code.is_some(),
            "aborted": false });
        let mut finished = json!({ "type": "turn_finished", "state": name });
        if let Some(code) = &code {
            result["error"] = json!({ "message": "it broke", "code": code });
            finished["errorCode"] = json!(code);
        }
        let done = json!({ "type": "done", "result": result.clone() });
        let usage = teamster_store::Usage { input_tokens: 10, output_tokens: 5, cost_micros: 1_500_000 };
        let day = crate::clock::day(self.gateway.now());
        let attempt = AttemptEnd {
            session: SessionChange::Keep,
            usage: Some(UsageEntry { day, agent: "claude".to_owned(), usage }),
            closings: Vec::new(),
            effects: Effects::events(vec![self.event(lease.turn, &done), self.event(lease.turn, &finished)]),
        };
        let finish = Finish { state, result: Some(Json::of(&result).unwrap()), error_code: code, attempt };
        self.store.finish(lease, finish, self.gateway.now()).await.unwrap();
        self.gateway.announce_growth(lease.conversation);
    }
}

impl Reply {
    /// Returns the body, and checks the status.
    pub(super) fn json(&self, status: StatusCode) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        if self.bytes.is_empty() {
            return Value::Null;
        }
        let value: Value = serde_json::from_slice(&self.bytes).unwrap();
        assert!(!has_null(&value), "a field is null: {value}");
        value
    }

    /// Returns the body of a problem, and checks its status and its code.
    pub(super) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.bytes));
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
        let value: Value = serde_json::from_slice(&self.bytes).unwrap();
        assert_eq!((&value["code"], &value["status"]), (&json!(code), &json!(status)), "{value}");
        let kind = format!("urn:teamster:problem:{}", code.to_lowercase().replace('_', "-"));
        assert_eq!(value["type"], kind);
        for field in ["title", "detail"] {
            assert!(value[field].as_str().is_some_and(|text| !text.is_empty()), "{value}");
        }
        value
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}
