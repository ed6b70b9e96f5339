//! The webhook channel end to end: a program sends a message, gets the prompt and the answer, and answers the prompt.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use teamster_channel::Channel;
use teamster_channel::signature::WebhookSecret;
use teamster_store::{DeliveryState, PermissionOutcome};
use tower::ServiceExt as _;

use super::{World, shut_down, until};
use crate::channels::{WebhookConfig, deliveries, router, webhooks};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

type Got = Arc<Mutex<Vec<Value>>>;

/// Starts a receiver that fails the first request with 503 and records the others.
async fn receiver() -> (String, Got) {
    let got = Got::default();
    let failures = Arc::new(Mutex::new(1));
    let handler = move |State(got): State<Got>, body: String| async move {
        let mut failures = failures.lock().unwrap();
        if *failures > 0 {
            *failures -= 1;
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        got.lock().unwrap().push(serde_json::from_str(&body).unwrap());
        StatusCode::NO_CONTENT
    };
    let app = Router::new().route("/hook", post(handler)).with_state(Arc::clone(&got));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, got)
}

async fn send(app: &Router, id: &str, body: &Value) -> (StatusCode, Value) {
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let body = body.to_string();
    let signature = WebhookSecret::parse(SECRET).unwrap().sign(id, now, body.as_bytes());
    let request = Request::post("/v1/webhooks/ci")
        .header("webhook-id", id)
        .header("webhook-timestamp", now)
        .header("webhook-signature", signature)
        .body(Body::from(body))
        .unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn a_program_sends_a_message_answers_the_prompt_and_gets_the_answer() {
    let (url, got) = receiver().await;
    let mut config = WebhookConfig::new("ci", url, SECRET);
    config.allow_loopback = true;
    let channels = webhooks(&[config]).unwrap();
    let world = World::new(Arc::clone(&channels[0]) as Arc<dyn Channel>).await;
    let app = router(channels);
    let (gateway, mut tasks) = world.start();
    let hello = json!({"chat": "build", "author": {"id": "alice"}, "text": "Deploy"});
    let (status, accepted) = send(&app, "id-1", &hello).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{accepted}");
    assert_eq!(send(&app, "id-1", &hello).await, (StatusCode::OK, json!({"status": "duplicate"})));

    let (claim, id) = super::prompts::request(&gateway, &world, &["webhook-ci:alice"]).await;
    until("the prompt arrives", || got.lock().unwrap().len() == 1).await;
    let prompt = got.lock().unwrap()[0].clone();
    let wanted = json!({"channel": "webhook-ci", "chat": "build", "thread": ""});
    assert_eq!((&prompt["type"], &prompt["target"]), (&json!("permission_request"), &wanted));
    assert_eq!(prompt["turnId"], accepted["turnId"]);
    let answer = |author: &str| json!({"type": "answer", "chat": "build", "author": {"id": author}, "token": prompt["answers"][0]["token"]});
    assert_eq!(send(&app, "id-2", &answer("bob")).await.0, StatusCode::FORBIDDEN);
    assert_eq!(send(&app, "id-3", &answer("alice")).await, (StatusCode::OK, json!({"status": "applied"})));
    assert_eq!(send(&app, "id-4", &answer("alice")).await.0, StatusCode::CONFLICT);
    let permission = gateway.store().permission(id).await.unwrap().unwrap();
    assert_eq!(permission.closing.unwrap().outcome, PermissionOutcome::Allowed);

    let to = deliveries::Recipient::of_turn(claim.lease, &claim.conversation.address, gateway.now());
    let answer = deliveries::answer(&to, "Deployed.", Some("s-1")).unwrap();
    gateway.store().enqueue(answer, gateway.now()).await.unwrap();
    let ended = world.settled().await;
    assert!(ended.iter().all(|state| *state == DeliveryState::Sent), "{ended:?}");
    let last = got.lock().unwrap().last().unwrap().clone();
    assert_eq!((&last["text"], &last["sessionId"], &last["target"]), (&json!("Deployed."), &json!("s-1"), &wanted));
    shut_down(&gateway, &mut tasks).await;
}

#[test]
fn two_webhooks_with_one_name_are_refused() {
    let config = WebhookConfig::new("ci", "https://example.com", SECRET);
    let error = webhooks(&[config.clone(), config]).unwrap_err();
    assert!(error.to_string().contains("two webhooks have the name ci"), "{error}");
}
