//! What programs send, and who gets in.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::receiver::{OLD_SECRET, Recorder, SECRET, channel, config, rotated};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use teamster_channel::signature::WebhookSecret;
use teamster_channel::{Channel as _, Receipt};
use teamster_channel_webhook::{WebhookChannel, router};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const URL: &str = "http://127.0.0.1:9/";

/// A channel that receives, until it is dropped.
struct Fixture {
    inbox: Arc<Recorder>,
    router: Router,
    stop: CancellationToken,
}

impl Fixture {
    fn of(channel: WebhookChannel, inbox: Arc<Recorder>) -> Self {
        let (channel, stop) = (Arc::new(channel), CancellationToken::new());
        let (receiving, token, recorder) = (Arc::clone(&channel), stop.clone(), Arc::clone(&inbox));
        tokio::spawn(async move { receiving.receive(&*recorder, token).await });
        Self { inbox, router: router([channel]), stop }
    }

    fn start() -> Self {
        Self::of(channel(URL), Arc::default())
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn post(&self, id: &str, body: &Value) -> (StatusCode, Value) {
        self.send(signed(SECRET, id, now(), &body.to_string())).await
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn signed(secret: &str, id: &str, timestamp: i64, body: &str) -> Request<Body> {
    let signature = WebhookSecret::parse(secret).unwrap().sign(id, timestamp, body.as_bytes());
    request(
        &[("webhook-id", id), ("webhook-timestamp", &timestamp.to_string()), ("webhook-signature", &signature)],
        body,
    )
}

fn request(headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::post("/v1/webhooks/ci");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

fn hello() -> Value {
    json!({"chat": "c", "thread": "t", "author": {"id": "alice"}, "text": "hi"})
}

#[tokio::test]
async fn a_signed_message_is_accepted_once_by_its_id() {
    let fixture = Fixture::start();
    let (status, body) = fixture.post("id-1", &hello()).await;
    assert_eq!((status, body), (StatusCode::ACCEPTED, json!({"status": "accepted", "turnId": "turn-1"})));
    let (status, body) = fixture.post("id-1", &hello()).await;
    assert_eq!((status, body), (StatusCode::OK, json!({"status": "duplicate"})));
    let messages = fixture.inbox.messages.lock().unwrap();
    assert_eq!((messages.len(), messages[0].ids.clone()), (1, vec!["id-1".to_owned()]));
    assert_eq!((messages[0].address.chat.as_str(), messages[0].address.thread.as_str()), ("c", "t"));
}

#[tokio::test]
async fn a_request_without_a_valid_signature_is_refused() {
    let fixture = Fixture::start();
    let (body, at) = (hello().to_string(), now());
    let stamp = at.to_string();
    let good = WebhookSecret::parse(SECRET).unwrap().sign("id", at, body.as_bytes());
    let forged = [
        request(&[], &body),
        request(&[("webhook-id", "id"), ("webhook-timestamp", &stamp)], &body),
        request(&[("webhook-timestamp", &stamp), ("webhook-signature", &good)], &body),
        request(&[("webhook-id", "id"), ("webhook-signature", &good)], &body),
        request(&[("webhook-id", "other"), ("webhook-timestamp", &stamp), ("webhook-signature", &good)], &body),
        request(
            &[("webhook-id", "id"), ("webhook-timestamp", &(at + 1).to_string()), ("webhook-signature", &good)],
            &body,
        ),
        request(
            &[("webhook-id", "id"), ("webhook-timestamp", &stamp), ("webhook-signature", &good)],
            &format!("{body} "),
        ),
        request(&[("webhook-id", "id"), ("webhook-timestamp", &stamp), ("webhook-signature", "v1,")], &body),
        request(&[("webhook-id", "id"), ("webhook-timestamp", &stamp), ("webhook-signature", &good[3..])], &body),
        request(
            &[("webhook-id", "x"), ("webhook-id", "id"), ("webhook-timestamp", &stamp), ("webhook-signature", &good)],
            &body,
        ),
        signed(OLD_SECRET, "id", at, &body),
        signed(SECRET, "id", at - 301, &body),
        signed(SECRET, "id", at + 60, &body),
        signed(SECRET, "id", -1, &body),
    ];
    for (number, request) in forged.into_iter().enumerate() {
        let (status, problem) = fixture.send(request).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{number}: {problem}");
        assert_eq!(problem["code"], "UNAUTHORIZED");
    }
    assert_eq!(fixture.inbox.messages.lock().unwrap().len(), 0);
    assert_eq!(fixture.send(signed(SECRET, "id", at - 290, &body)).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn both_secrets_are_accepted_during_a_rotation_and_no_other() {
    let fixture = Fixture::of(rotated(URL), Arc::default());
    let body = hello().to_string();
    assert_eq!(fixture.send(signed(SECRET, "1", now(), &body)).await.0, StatusCode::ACCEPTED);
    assert_eq!(fixture.send(signed(OLD_SECRET, "2", now(), &body)).await.0, StatusCode::ACCEPTED);
    let other = signed("whsec_ZZKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "3", now(), &body);
    assert_eq!(fixture.send(other).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_replayed_command_or_edit_has_no_effect_also_after_a_restart() {
    let inbox = Arc::new(Recorder::default());
    let stop = json!({"type": "command", "chat": "c", "author": {"id": "alice"}, "name": "stop"});
    let edit = json!({"type": "edit", "id": "id-1", "text": "new"});
    let first = Fixture::of(channel(URL), Arc::clone(&inbox));
    assert_eq!(first.post("cmd", &stop).await, (StatusCode::OK, json!({"status": "done", "text": "done"})));
    assert_eq!(first.post("edit", &edit).await.0, StatusCode::OK);
    assert_eq!(first.post("cmd", &stop).await, (StatusCode::OK, json!({"status": "duplicate"})));
    drop(first);
    let second = Fixture::of(channel(URL), Arc::clone(&inbox));
    assert_eq!(second.post("cmd", &stop).await, (StatusCode::OK, json!({"status": "duplicate"})));
    assert_eq!(second.post("edit", &edit).await, (StatusCode::OK, json!({"status": "duplicate"})));
    assert_eq!(inbox.commands.lock().unwrap().len(), 1);
    assert_eq!(inbox.edits.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_permission_request_is_answered_and_a_refused_press_is_reported() {
    let fixture = Fixture::start();
    let answer =
        |author: &str| json!({"type": "answer", "chat": "c", "author": {"id": author}, "token": "secret-token"});
    assert_eq!(fixture.post("1", &answer("stranger")).await.0, StatusCode::FORBIDDEN);
    assert_eq!(fixture.post("2", &answer("alice")).await, (StatusCode::OK, json!({"status": "applied"})));
    let (status, problem) = fixture.post("3", &answer("alice")).await;
    assert_eq!((status, problem["code"].as_str()), (StatusCode::CONFLICT, Some("ALREADY_ANSWERED")));
}

#[tokio::test]
async fn a_message_is_not_acknowledged_before_it_is_durable() {
    let fixture = Fixture::start();
    *fixture.inbox.fails.lock().unwrap() = true;
    assert_eq!(fixture.post("id-1", &hello()).await.0, StatusCode::SERVICE_UNAVAILABLE);
    *fixture.inbox.fails.lock().unwrap() = false;
    assert_eq!(fixture.post("id-1", &hello()).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn each_receipt_has_its_status() {
    let fixture = Fixture::start();
    for (receipt, wanted) in [
        (Receipt::Ignored, StatusCode::OK),
        (Receipt::Refused("no".to_owned()), StatusCode::UNPROCESSABLE_ENTITY),
        (Receipt::Busy("full".to_owned()), StatusCode::TOO_MANY_REQUESTS),
    ] {
        *fixture.inbox.receipt.lock().unwrap() = Some(receipt.clone());
        let response = fixture.router.clone().oneshot(signed(SECRET, "x", now(), &hello().to_string())).await.unwrap();
        assert_eq!(response.status(), wanted, "{receipt:?}");
        assert_eq!(response.headers().contains_key("retry-after"), wanted == StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test]
async fn wrong_bodies_names_and_sizes_are_refused_with_a_reason() {
    let mut config = config(URL);
    config.max_body_bytes = 200;
    let fixture = Fixture::of(WebhookChannel::new(config).unwrap(), Arc::default());
    let (status, problem) = fixture.post("1", &json!({"chat": "c"})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(problem["detail"], "author is missing");
    let big = json!({"chat": "c", "author": {"id": "a"}, "text": "x".repeat(300)});
    assert_eq!(fixture.post("2", &big).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let other = Request::post("/v1/webhooks/other").body(Body::empty()).unwrap();
    assert_eq!(fixture.send(other).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_gateway_that_does_not_receive_reports_it_within_its_time_limit() {
    let mut config = config(URL);
    config.timeout = Duration::from_millis(100);
    let app = router([Arc::new(WebhookChannel::new(config).unwrap())]);
    let response = app.oneshot(signed(SECRET, "1", now(), &hello().to_string())).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "5");
}

/// A body that is never sent, of unknown size or of this one.
fn unsent() -> Body {
    Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::convert::Infallible>>())
}

fn unsigned(timestamp: i64, body: Body) -> Request<Body> {
    let request = Request::post("/v1/webhooks/ci").header("webhook-id", "id").header("webhook-signature", "v1,AAAA");
    request.header("webhook-timestamp", timestamp).body(body).unwrap()
}

#[tokio::test]
async fn an_old_request_is_refused_before_its_body_is_read() {
    let fixture = Fixture::start();
    for timestamp in [now() - 301, now() + 60, 0] {
        let answered = tokio::time::timeout(Duration::from_secs(20), fixture.send(unsigned(timestamp, unsent())));
        assert_eq!(answered.await.expect("at once").0, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn bodies_without_a_checked_signature_take_a_bounded_memory() {
    let fixture = Fixture::start();
    // 64 bodies of unknown size count as the largest of 1 MiB.
    let mut waiting = Vec::new();
    for _ in 0..64 {
        let router = fixture.router.clone();
        waiting.push(tokio::spawn(router.oneshot(unsigned(now(), unsent()))));
    }
    let refused = async {
        loop {
            let (status, _) = fixture.send(unsigned(now(), Body::from(vec![b'x'; 1 << 20]))).await;
            if status == StatusCode::SERVICE_UNAVAILABLE {
                return;
            }
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), refused).await.expect("the memory is bounded");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    let accepted = async {
        while fixture.post("id-1", &hello()).await.0 == StatusCode::SERVICE_UNAVAILABLE {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), accepted).await.expect("the room is free again");
    assert_eq!(fixture.inbox.messages.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_body_of_a_known_size_beyond_the_limit_is_refused_unread() {
    let fixture = Fixture::start();
    let large = unsigned(now(), Body::from(vec![b'x'; (1 << 20) + 1]));
    assert_eq!(fixture.send(large).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn what_the_gateway_sends_cannot_be_sent_back_to_it() {
    let fixture = Fixture::start();
    // Both directions have the same secret. An item of the gateway always has its target.
    let item = json!({"type": "answer", "target": {"channel": "webhook-ci", "chat": "c", "thread": ""}, "chat": "c",
        "author": {"id": "alice"}, "token": "t"});
    assert_eq!(fixture.post("id-1", &item).await.0, StatusCode::BAD_REQUEST);
    let answer = json!({"type": "answer", "target": {"channel": "webhook-ci", "chat": "c", "thread": ""}, "text": "Deployed.",
        "turnId": "t", "conversationId": "c", "part": 0, "parts": 1, "mayBeRepeat": false, "createdAt": "now"});
    assert_eq!(fixture.post("id-2", &answer).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(fixture.inbox.messages.lock().unwrap().len(), 0);
}
