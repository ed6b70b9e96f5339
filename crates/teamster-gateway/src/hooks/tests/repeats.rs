//! Messages that come again, and messages while a hook does not work.

use teamster_store::{IdempotencyKey, MessageMode};

use super::*;
use crate::engine::{IncomingMessage, MessageTarget};

fn incoming(key: &str, id: &str) -> IncomingMessage {
    IncomingMessage {
        target: MessageTarget::Address(chat("garden")),
        channel_ids: vec![id.to_owned()],
        idempotency: Some(IdempotencyKey { scope: "t".to_owned(), key: key.to_owned(), body_hash: [1; 32] }),
        author: "ann".to_owned(),
        text: "hello".to_owned(),
        attachments: Vec::new(),
        mode: MessageMode::Queue,
    }
}

#[tokio::test]
async fn a_repeated_message_has_its_first_outcome_and_is_not_checked_again() {
    let directory = tempfile::tempdir().unwrap();
    // It rejects every message but the first.
    let script = "if [ -e judged ]; then echo '{\"decision\": \"reject\"}'; else touch judged; fi";
    let hook = HookConfig { directory: Some(directory.path().to_owned()), ..shell(script) };
    let test = TestGateway::new(|config| config.hooks = vec![hook]);
    let first = test.gateway.accept(incoming("a", "1")).await.unwrap();
    assert!(!first.is_duplicate);
    // By its key, and by its id in the channel.
    for (key, id) in [("a", "2"), ("b", "1")] {
        let again = test.gateway.accept(incoming(key, id)).await.unwrap();
        assert_eq!((again.turn, again.is_duplicate), (first.turn, true));
    }
    let other = test.gateway.accept(incoming("b", "2")).await.unwrap_err();
    assert!(matches!(other, GatewayError::Rejected { .. }), "{other}");
}

#[tokio::test]
async fn a_message_that_could_not_be_checked_is_accepted_when_the_hook_works_again() {
    let directory = tempfile::tempdir().unwrap();
    let hook = closed(HookConfig { directory: Some(directory.path().to_owned()), ..shell("test -e works") });
    let test = TestGateway::new(|config| config.hooks = vec![hook]);
    let error = test.gateway.accept(incoming("a", "1")).await.unwrap_err();
    assert!(matches!(error, GatewayError::Unavailable { .. }), "{error}");
    fs::write(directory.path().join("works"), "").unwrap();
    assert!(!test.gateway.accept(incoming("a", "1")).await.unwrap().is_duplicate);
}
