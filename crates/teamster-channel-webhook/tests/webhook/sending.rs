//! What the channel sends, to a receiver that fails in each way.

use std::time::{Duration, Instant};

use super::receiver::{Answer, Got, OLD_SECRET, Receiver, SECRET, channel, config, outgoing, rotated};
use teamster_channel::{Channel as _, RateScope, SendError, SendOutcome};
use teamster_channel_webhook::WebhookChannel;

#[tokio::test]
async fn an_item_is_signed_and_sent_with_its_key_as_id() {
    let receiver = Receiver::start([]).await;
    let outcome = channel(&receiver.url).send(&outgoing("turn:1:answer:0")).await;
    assert!(matches!(outcome, SendOutcome::Sent(_)), "{outcome:?}");
    let requests = receiver.requests();
    assert_eq!((requests.len(), requests[0].id.as_str()), (1, "turn:1:answer:0"));
    assert!(requests[0].is_signed_with(SECRET) && !requests[0].is_signed_with(OLD_SECRET));
    assert_eq!(requests[0].json()["text"], "Hello");
}

#[tokio::test]
async fn each_attempt_has_the_same_id_and_a_signature_of_its_own_time() {
    let receiver = Receiver::start([Answer::Status("503 Service Unavailable\r\ncontent-length: 0")]).await;
    let channel = channel(&receiver.url);
    assert!(matches!(channel.send(&outgoing("k")).await, SendOutcome::NotSent(SendError::Later { .. })));
    // The time of a signature is in seconds: an attempt in the same second has the same signature.
    let deadline = Instant::now() + Duration::from_secs(10);
    let differ = |requests: &[Got]| requests.iter().any(|request| request.timestamp != requests[0].timestamp);
    while !differ(&receiver.requests()) && Instant::now() < deadline {
        assert!(matches!(channel.send(&outgoing("k")).await, SendOutcome::Sent(_)));
    }
    let requests = receiver.requests();
    assert!(differ(&requests) && requests.iter().all(|request| request.id == "k"));
    assert!(requests.iter().all(|request| request.is_signed_with(SECRET)));
}

#[tokio::test]
async fn all_secrets_sign_during_a_rotation() {
    let receiver = Receiver::start([]).await;
    rotated(&receiver.url).send(&outgoing("k")).await;
    let request = &receiver.requests()[0];
    assert!(request.is_signed_with(SECRET) && request.is_signed_with(OLD_SECRET));
}

#[tokio::test]
async fn a_rate_limit_is_reported_with_its_wait() {
    let receiver = Receiver::start([Answer::Status("429 Too Many\r\nretry-after: 7\r\ncontent-length: 0")]).await;
    let outcome = channel(&receiver.url).send(&outgoing("k")).await;
    let wanted = (Some(Duration::from_secs(7)), RateScope::Channel);
    assert!(
        matches!(&outcome, SendOutcome::NotSent(SendError::Later { after, scope, .. }) if (*after, *scope) == wanted),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_request_that_was_written_and_not_answered_has_an_unknown_outcome() {
    for answer in [Answer::Reset, Answer::Hang] {
        let receiver = Receiver::start([answer.clone()]).await;
        let outcome = channel(&receiver.url).send(&outgoing("k")).await;
        assert!(matches!(outcome, SendOutcome::Unknown(_)), "{answer:?}: {outcome:?}");
        assert_eq!(receiver.requests().len(), 1, "{answer:?}: it must not be sent twice by one call");
    }
}

#[tokio::test]
async fn an_unreachable_receiver_has_not_received_it_and_no_url_is_shown() {
    let receiver = Receiver::start([]).await;
    let url = receiver.url.clone();
    drop(receiver);
    let mut outcome = channel(&url).send(&outgoing("k")).await;
    // The task of the receiver ends at its next poll.
    let deadline = Instant::now() + Duration::from_secs(5);
    while !matches!(outcome, SendOutcome::NotSent(_)) && Instant::now() < deadline {
        outcome = channel(&url).send(&outgoing("k")).await;
    }
    let SendOutcome::NotSent(SendError::Unavailable { reason, after: None }) = outcome else { panic!("{outcome:?}") };
    assert!(!reason.contains("/hook"), "{reason}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Receiver::start([]).await;
    let head = format!("307 Temporary Redirect\r\nlocation: {}\r\ncontent-length: 0", target.url);
    let receiver = Receiver::start([Answer::Status(head.leak())]).await;
    let outcome = channel(&receiver.url).send(&outgoing("k")).await;
    assert!(matches!(outcome, SendOutcome::NotSent(SendError::Never(_))), "{outcome:?}");
    assert_eq!(target.requests().len(), 0);
}

#[tokio::test]
async fn an_answer_without_end_does_not_hold_the_channel() {
    let receiver = Receiver::start([Answer::Flood]).await;
    let started = Instant::now();
    let outcome = channel(&receiver.url).send(&outgoing("k")).await;
    assert!(matches!(outcome, SendOutcome::Sent(_)), "{outcome:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_host_that_resolves_to_a_forbidden_address_gets_no_request() {
    let receiver = Receiver::start([]).await;
    let mut config = config(&receiver.url.replace("127.0.0.1", "localhost"));
    assert!(matches!(WebhookChannel::new(config.clone()).unwrap().send(&outgoing("k")).await, SendOutcome::Sent(_)));
    (config.allow_loopback, config.allow_http, config.allow_private) = (false, true, true);
    let channel = WebhookChannel::new(config).unwrap();
    let outcome = channel.send(&outgoing("k")).await;
    let SendOutcome::NotSent(SendError::Unavailable { reason, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("has a loopback address"), "{reason}");
    assert!(channel.check().await.unwrap_err().to_string().contains("has a loopback address"));
    assert_eq!(receiver.requests().len(), 1);
}
