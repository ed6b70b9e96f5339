//! What Prometheus reads from a gateway.

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use axum::{Extension, Router};
use teamster_gateway::access::{Identity, Scope};
use teamster_gateway::telemetry::count_requests;
use teamster_gateway::{Gateway, IncomingMessage, MessageTarget, http};
use teamster_store::{ChatAddress, MessageMode, TurnState};
use tower::ServiceExt as _;

use crate::exposition::parse;
use crate::test_gateway::TestGateway;

const ECHO: &str = "[[turns]]\nsteps = [{ say = \"You said: {prompt}\" }]\n";

pub(crate) fn app(gateway: &Gateway, scopes: Vec<Scope>) -> Router {
    let identity = Identity { token: None, owner: "test".to_owned(), scopes };
    let app = http::router(gateway.clone()).layer(Extension(identity));
    count_requests(app, gateway.metrics())
}

pub(crate) async fn get(app: &Router, path: &str, accept: &str) -> (StatusCode, String, String) {
    let request = Request::get(path).header("accept", accept).body(Body::empty()).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let kind = headers.get("content-type").map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, kind, String::from_utf8(body.to_vec()).unwrap())
}

/// Returns the samples by name and labels, as they are written.
pub(crate) async fn scrape(app: &Router) -> BTreeMap<String, f64> {
    let (status, kind, text) = get(app, "/metrics", "*/*").await;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    parse(&text)
}

#[tokio::test]
async fn the_metrics_of_a_turn_are_counted() {
    let mut test = TestGateway::start(ECHO).await;
    let app = app(&test.gateway, vec![Scope::Read]);
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    assert_eq!(test.ended(turn).await.state, TurnState::Done);
    let (status, ..) = get(&app, &format!("/v1/turns/{turn}"), "*/*").await;
    assert_eq!(status, StatusCode::OK);
    let samples = scrape(&app).await;
    let expected = [
        ("teamster_messages_accepted_total{channel=\"http\"}", 1.0),
        ("teamster_turns_ended_total{agent=\"claude\",state=\"done\",code=\"none\"}", 1.0),
        ("teamster_turn_duration_seconds_count", 1.0),
        ("teamster_first_event_seconds_count", 1.0),
        ("teamster_turns{state=\"queued\"}", 0.0),
        ("teamster_conversations", 1.0),
        ("teamster_store_up", 1.0),
        ("teamster_leases_lost_total", 0.0),
        ("teamster_hook_failures_total", 0.0),
        ("teamster_event_subscribers", 0.0),
        ("teamster_store_write_seconds_count{operation=\"finish\"}", 1.0),
        ("teamster_http_requests_total{method=\"GET\",route=\"/v1/turns/{id}\",status=\"2xx\"}", 1.0),
    ];
    for (name, value) in expected {
        assert_eq!(samples.get(name), Some(&value), "{name} in {samples:#?}");
    }
    assert!(samples["teamster_store_size_bytes"] > 0.0);
    test.shutdown().await;
}

#[tokio::test]
async fn failed_attempts_and_refused_messages_are_counted() {
    let test = TestGateway::start("[[turns]]\nsteps = [{ exit = 3 }]\n").await;
    let app = app(&test.gateway, vec![Scope::Read]);
    let conversation = test.conversation().await;
    let turn = test.ended(test.send(conversation, "hello").await.turn).await;
    assert_eq!(turn.state, TurnState::Failed);
    let empty = IncomingMessage {
        target: MessageTarget::Conversation(conversation),
        channel_ids: Vec::new(),
        idempotency: None,
        author: "test".into(),
        text: String::new(),
        attachments: Vec::new(),
        mode: MessageMode::Queue,
    };
    test.gateway.accept(empty).await.unwrap_err();
    let samples = scrape(&app).await;
    let ended = "teamster_turns_ended_total{agent=\"claude\",state=\"failed\",code=\"CLI_EXIT\"}";
    assert_eq!(samples.get(ended), Some(&1.0), "{samples:#?}");
    assert_eq!(samples.get("teamster_turns_handed_back_total{kind=\"retry\"}"), Some(&3.0));
    assert_eq!(samples.get("teamster_messages_refused_total"), Some(&1.0));
}

#[tokio::test]
async fn label_values_are_bounded_whatever_clients_send() {
    let test = TestGateway::start(ECHO).await;
    let app = app(&test.gateway, vec![Scope::Read]);
    let mut sizes = Vec::new();
    for round in 0..2 {
        for number in 0..50 {
            get(&app, &format!("/{round}/{number}"), "*/*").await;
            get(&app, &format!("/v1/turns/{round}{number}\"}}"), "*/*").await;
            let request = Request::builder().method(format!("M{round}{number}").as_str()).uri("/healthz");
            app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            let address = ChatAddress {
                channel: format!("made-up-{round}-{number}"),
                chat: "1".to_owned(),
                thread: String::new(),
            };
            let message = IncomingMessage {
                target: MessageTarget::Address(address),
                channel_ids: Vec::new(),
                idempotency: None,
                author: "test".into(),
                text: "hello".into(),
                attachments: Vec::new(),
                mode: MessageMode::Queue,
            };
            test.gateway.accept(message).await.unwrap();
        }
        let samples = scrape(&app).await;
        assert_eq!(
            samples.get("teamster_messages_accepted_total{channel=\"other\"}"),
            Some(&f64::from((round + 1) * 50))
        );
        let bounded = |name: &&String| name.starts_with("teamster_http") || name.starts_with("teamster_messages");
        sizes.push(samples.keys().filter(bounded).count());
    }
    // The first scrape is counted before the second one.
    assert!(sizes[1] <= sizes[0] + 1, "{sizes:?}");
}

#[tokio::test]
async fn metrics_need_the_scope_read() {
    let test = TestGateway::start(ECHO).await;
    let (status, ..) = get(&app(&test.gateway, vec![Scope::Send]), "/metrics", "*/*").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, ..) = get(&http::router(test.gateway.clone()), "/metrics", "*/*").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_scraper_that_asks_for_open_metrics_gets_it() {
    let test = TestGateway::start(ECHO).await;
    let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1";
    let (status, kind, body) = get(&app(&test.gateway, vec![Scope::Read]), "/metrics", accept).await;
    assert_eq!((status, kind.as_str()), (StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(body.ends_with("# EOF\n"), "{body}");
    assert!(body.contains("teamster_build_info{version="), "{body}");
}
