//! Every end of a turn is visible: in the log, in the chat, in the result and to the hooks.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use teamster::RunResult;
use teamster_gateway::attachments::StoredAttachment;
use teamster_gateway::config::{Config, Rule};
use teamster_gateway::hooks::{HookConfig, HookEventKind};
use teamster_gateway::{IncomingMessage, MessageTarget};
use teamster_store::{
    AcceptedTurn, ChatAddress, ConversationPatch, DeliveryFilter, Effects, Json, MessageMode, PageRequest, TurnId,
    TurnState,
};
use tokio::time::timeout;

use crate::test_gateway::{LIMIT, TestGateway};

const SLOW: &str = "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 60000 }]\n";

/// Sends a message to a chat of a channel with deliveries.
async fn send(test: &TestGateway, chat: &str, author: &str, attachments: Vec<StoredAttachment>) -> AcceptedTurn {
    let address = ChatAddress { channel: "test".to_owned(), chat: chat.to_owned(), thread: String::new() };
    let message = IncomingMessage {
        target: MessageTarget::Address(address),
        channel_ids: Vec::new(),
        idempotency: None,
        author: author.to_owned(),
        text: "hello".to_owned(),
        attachments,
        mode: MessageMode::Queue,
    };
    test.gateway.accept(message).await.unwrap().turn
}

/// Returns what the chat of a turn gets.
async fn shown(test: &TestGateway, turn: TurnId) -> Vec<Value> {
    let filter = DeliveryFilter { turn: Some(turn), ..DeliveryFilter::default() };
    let found = test.gateway.store().deliveries(filter, PageRequest::first(10)).await.unwrap();
    found.items.into_iter().map(|delivery| delivery.body.to::<Value>().unwrap()["content"].clone()).collect()
}

/// Returns the end of a turn that the hook has got.
async fn hooked(file: &Path, turn: TurnId) -> Value {
    let wait = async {
        loop {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let of_turn = events.filter(|event| event["turnId"] == turn.to_string()).collect::<Vec<_>>();
            if let [event] = &of_turn[..] {
                return event.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, wait).await.expect("the hook is called once")
}

#[tokio::test]
async fn an_end_without_an_attempt_is_shown_everywhere() {
    let events = tempfile::tempdir().unwrap();
    let file = events.path().join("events");
    let hook = HookConfig {
        name: "ends".to_owned(),
        events: vec![HookEventKind::TurnFinished],
        command: ["sh", "-c", "cat >> events; echo >> events"].map(str::to_owned).to_vec(),
        directory: Some(events.path().to_owned()),
        ..HookConfig::default()
    };
    let test = TestGateway::with_config(SLOW, |config| config.hooks = vec![hook.clone()]).await;
    let running = send(&test, "a", "alice", Vec::new()).await;
    test.event(running.conversation, "text").await;
    let aborted = send(&test, "a", "alice", Vec::new()).await.turn;
    test.gateway.abort_turn(aborted).await.unwrap();
    assert_eq!(hooked(&file, aborted).await["state"], "aborted");
    let [stopped] = &shown(&test, aborted).await[..] else { panic!("one item") };
    assert_eq!((stopped["kind"].as_str(), stopped["error"].as_str()), (Some("failure"), Some("Stopped.")));
    assert_eq!(stopped["code"], "ABORTED", "a program knows that no answer follows");

    let forbidden = send(&test, "a", "mallory", Vec::new()).await;
    let change = |config: &mut Config| {
        config.hooks = vec![hook];
        config.rules = vec![Rule { authors: Some(vec!["mallory".to_owned()]), reject: true, ..Rule::default() }];
    };
    let test = TestGateway::in_directory(test.crash(), change).await;
    for (turn, code) in [(running.turn, "INTERRUPTED"), (forbidden.turn, "FORBIDDEN")] {
        let ended = test.ended(turn).await;
        assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some(code)));
        let result: RunResult = ended.result.unwrap().to().unwrap();
        assert!(result.is_error && !result.error.unwrap().message.as_str().is_empty());
        let event = hooked(&file, turn).await;
        assert_eq!((event["state"].as_str(), event["errorCode"].as_str()), (Some("failed"), Some(code)));
        let last = shown(&test, turn).await.pop().unwrap();
        assert_eq!((last["kind"].as_str(), last["code"].as_str()), (Some("failure"), Some(code)));
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_fails_its_turn_at_once_and_is_named() {
    let test = TestGateway::start(SLOW).await;
    let (name, media_type) = ("plan.pdf".to_owned(), "application/pdf".to_owned());
    let missing = StoredAttachment { name, media_type, hash: "0".repeat(64), size: 1 };
    let turn = send(&test, "a", "alice", vec![missing]).await;
    let ended = test.ended(turn.turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("INVALID_REQUEST")));
    assert!(test.event(turn.conversation, "turn_finished").await["error"].as_str().unwrap().contains("plan.pdf"));
}

#[tokio::test]
async fn settings_that_cannot_be_read_fail_the_turn_and_block_nothing() {
    let test = TestGateway::start(SLOW).await;
    let first = send(&test, "a", "alice", Vec::new()).await;
    test.event(first.conversation, "text").await;
    let second = send(&test, "a", "alice", Vec::new()).await;
    let patch = ConversationPatch { settings: Some(Json::parse("{\"model\":5}").unwrap()), ..Default::default() };
    let (store, now) = (test.gateway.store(), test.gateway.now());
    store.update_conversation(first.conversation, patch, Effects::default(), now).await.unwrap();
    test.gateway.abort_turn(first.turn).await.unwrap();
    let ended = test.ended(second.turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("INVALID_REQUEST")));
}
