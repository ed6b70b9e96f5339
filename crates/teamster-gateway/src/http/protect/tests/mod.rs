//! Attempts at unauthorized access.

mod authentication;
mod limits;
mod origin;
mod sessions;
mod streams;
mod tokens;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::{get, post};
use serde_json::Value;
use teamster::Runtime;
use teamster_store::{HostId, MemoryStore, PageRequest};
use tower::ServiceExt as _;

use super::{Protection, ProtectionOptions};
use crate::access::{FirstToken, NewToken, Scope, Secret, Tokens, first_token};
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::{Gateway, Parts};

/// A gateway with the checks around two routes and the calls for tokens.
struct Fixture {
    app: Router,
    gateway: Gateway,
    directory: tempfile::TempDir,
}

/// A response, read to its end.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

fn fixture() -> Fixture {
    with(|_| {}, None, Clock::system())
}

fn with(change: impl FnOnce(&mut Config), fixed_token: Option<Secret>, clock: Clock) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config { data_dir: directory.path().to_owned(), ..Config::default() };
    // Tests send many requests at once. Those of the limits set their own.
    config.limits.requests_per_second = NonZeroU32::new(10_000).unwrap();
    change(&mut config);
    let listen = config.listen;
    let gateway = Gateway::new(Parts {
        config,
        store: Arc::new(MemoryStore::new()),
        runtime: Arc::new(Runtime::new()),
        channels: Vec::new(),
        host: HostId::new("test"),
        clock,
    });
    let options = ProtectionOptions { listen, fixed_token };
    let protection = Protection::new(gateway.clone(), options).unwrap();
    let tokens = crate::http::tokens::router(protection.clone());
    let open = Router::new().route("/healthz", get(|| async { "ok" })).route("/", get(|| async { "page" }));
    let slow = || tokio::time::sleep(std::time::Duration::from_secs(10));
    let echo = |body: axum::body::Bytes| async move { body.len().to_string() };
    let protected = Router::from(tokens)
        .route("/v1/things", get(|| async { "things" }))
        .route("/v1/things", post(echo))
        .route("/v1/slow", get(slow));
    Fixture { app: protection.protect(open, protected), gateway, directory }
}

impl Fixture {
    /// Returns a new token with these scopes.
    async fn token(&self, scopes: &[Scope]) -> String {
        let new = NewToken { owner: "ada".to_owned(), scopes: scopes.to_vec() };
        let (_, secret) = Tokens::new(self.gateway.clone()).create(new).await.unwrap();
        secret.expose().to_owned()
    }

    /// Sends a request. The headers are those of a regular client, unless `headers` has others.
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send_from("127.0.0.1:5000", method, path, headers, body).await
    }

    async fn send_from(&self, peer: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "localhost:4780");
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        request = request.extension(ConnectInfo(peer.parse::<SocketAddr>().unwrap()));
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, text }
    }

    async fn get(&self, path: &str, token: &str) -> Answer {
        self.send("GET", path, &[("authorization", &bearer(token))], "").await
    }

    async fn post(&self, path: &str, token: &str, body: &str) -> Answer {
        let headers = [("authorization", bearer(token)), ("content-type", "application/json".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        self.send("POST", path, &headers, body).await
    }

    /// Returns the audit log: action, actor and details.
    async fn audit(&self) -> Vec<(String, String, String)> {
        let page = self.gateway.store().audit_log(PageRequest::first(1_000)).await.unwrap();
        let entries = page.items.into_iter().map(|found| found.entry);
        entries.map(|entry| (entry.action, entry.actor, entry.details.as_str().to_owned())).collect()
    }

    async fn first(&self) -> FirstToken {
        first_token(&self.gateway).await.unwrap()
    }
}

fn bearer(token: &str) -> String {
    if token.is_empty() { String::new() } else { format!("Bearer {token}") }
}
