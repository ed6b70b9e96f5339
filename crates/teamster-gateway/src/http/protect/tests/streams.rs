//! Streams end with the access of their callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use futures::StreamExt as _;
use teamster_store::{Timestamp, TokenId};
use tokio::sync::broadcast;
use tower::ServiceExt as _;

use super::{Fixture, bearer, fixture, with};
use crate::access::{NewToken, Scope, Tokens};
use crate::clock::Clock;
use crate::http::{Protection, ProtectionOptions};

/// An app with an event stream.
struct Streams {
    fixture: Fixture,
    app: Router,
    events: broadcast::Sender<&'static str>,
}

impl Streams {
    fn new(fixture: Fixture) -> Self {
        let events = broadcast::Sender::new(16);
        let sender = events.clone();
        let stream = move || {
            let receiver = sender.subscribe();
            let chunks = futures::stream::unfold(receiver, async |mut receiver| {
                let chunk = receiver.recv().await.ok()?;
                Some((Ok::<_, std::convert::Infallible>(chunk), receiver))
            });
            std::future::ready(([("content-type", "text/event-stream")], Body::from_stream(chunks)))
        };
        let options = ProtectionOptions { listen: fixture.gateway.config().listen, fixed_token: None };
        let protection = Protection::new(fixture.gateway.clone(), options).unwrap();
        let app = protection.protect(Router::new(), Router::new().route("/v1/stream", get(stream)));
        Self { fixture, app, events }
    }

    async fn open(&self, header: (&str, &str)) -> BodyDataStream {
        let request = Request::get("/v1/stream").header("host", "localhost:4780").header(header.0, header.1);
        let peer = "127.0.0.1:5000".parse::<std::net::SocketAddr>().unwrap();
        let request = request.extension(ConnectInfo(peer)).body(Body::empty()).unwrap();
        let response = self.app.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response.into_body().into_data_stream()
    }

    async fn new_token(&self) -> (TokenId, String) {
        let new = NewToken { owner: "ada".to_owned(), scopes: vec![Scope::Read] };
        let (view, secret) = Tokens::new(self.fixture.gateway.clone()).create(new).await.unwrap();
        (view.id, secret.expose().to_owned())
    }
}

async fn next(stream: &mut BodyDataStream) -> Option<String> {
    let chunk = tokio::time::timeout(Duration::from_hours(1), stream.next()).await.expect("the stream continues");
    chunk.map(|chunk| String::from_utf8(chunk.unwrap().to_vec()).unwrap())
}

async fn assert_ends(stream: &mut BodyDataStream) {
    let last = next(stream).await.unwrap();
    assert!(last.starts_with("event: stream_end\ndata: {\"type\":\"stream_end\",\"code\":\"UNAUTHORIZED\""), "{last}");
    assert_eq!(next(stream).await, None);
}

#[tokio::test]
async fn a_revoked_token_loses_its_open_streams_and_no_other_does() {
    let streams = Streams::new(fixture());
    let (id, secret) = streams.new_token().await;
    let (_, other) = streams.new_token().await;
    let mut stream = streams.open(("authorization", &bearer(&secret))).await;
    let mut others = streams.open(("authorization", &bearer(&other))).await;
    streams.events.send("one").unwrap();
    assert_eq!(next(&mut stream).await.as_deref(), Some("one"));
    assert_eq!(next(&mut others).await.as_deref(), Some("one"));
    Tokens::new(streams.fixture.gateway.clone()).revoke(id).await.unwrap();
    assert_ends(&mut stream).await;
    streams.events.send("two").unwrap();
    assert_eq!(next(&mut others).await.as_deref(), Some("two"));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_another_process_has_revoked_loses_its_streams_within_a_minute() {
    let streams = Streams::new(fixture());
    let (id, secret) = streams.new_token().await;
    let mut stream = streams.open(("authorization", &bearer(&secret))).await;
    let gateway = &streams.fixture.gateway;
    gateway.store().revoke_token(id, gateway.now()).await.unwrap();
    let before = tokio::time::Instant::now();
    assert_ends(&mut stream).await;
    assert!(before.elapsed() <= Duration::from_secs(61), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_has_ended_loses_its_streams() {
    let time = Arc::new(AtomicI64::new(1_767_225_600_000));
    let reads = Arc::clone(&time);
    let clock = Clock::new(move || Timestamp::from_millis(reads.load(Ordering::SeqCst)));
    let streams = Streams::new(with(|_| {}, None, clock));
    let (id, secret) = streams.new_token().await;
    let headers = [("authorization", bearer(&secret)), ("content-type", "application/json".to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut cookies = Vec::new();
    for _ in 0..2 {
        let created = streams.fixture.send("POST", "/v1/session", &headers, "").await;
        let cookie = created.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        cookies.push(cookie);
    }
    let mut by_time = streams.open(("cookie", &cookies[0])).await;
    time.fetch_add(1000 * 60 * 60 * 24 * 40, Ordering::SeqCst);
    assert_ends(&mut by_time).await;
    time.fetch_sub(1000 * 60 * 60 * 24 * 40, Ordering::SeqCst);
    // The session ends with the token from which it was derived.
    let mut by_parent = streams.open(("cookie", &cookies[1])).await;
    Tokens::new(streams.fixture.gateway.clone()).revoke(id).await.unwrap();
    assert_ends(&mut by_parent).await;
}
