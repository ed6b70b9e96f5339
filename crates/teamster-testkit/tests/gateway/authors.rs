//! Several authors in one conversation: none of them gets the rights of another one.

use std::path::Path;
use std::sync::Arc;

use teamster::RunResult;
use teamster::request::PermissionMode;
use teamster_gateway::config::Rule;
use teamster_gateway::event::rfc3339;
use teamster_gateway::schedules::{self, ScheduleBody};
use teamster_gateway::{Caller, GatewayError, IncomingMessage, MessageTarget};
use teamster_store::{ConversationId, Decision, MessageMode, PermissionId, ScheduleId, Seq, TurnId, TurnState};

use crate::test_gateway::{TestGateway, play_scenario, write_agent, write_program};

const ASK: &str =
    "[[turns]]\nsteps = [{ run = { command = \"ls\", output = \"a\\n\", ask = true } }, { say = \"after\" }]\n";

const SLOW: &str = "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 500 }, { say = \"end\" }]\n";

async fn send(test: &TestGateway, to: ConversationId, author: &str, mode: MessageMode) -> TurnId {
    let message = IncomingMessage {
        target: MessageTarget::Conversation(to),
        channel_ids: Vec::new(),
        idempotency: None,
        author: author.to_owned(),
        text: format!("from {author}"),
        attachments: Vec::new(),
        mode,
    };
    test.gateway.accept(message).await.unwrap().turn.turn
}

fn author(name: &str) -> Caller {
    Caller { id: format!("http:{name}"), answers_all: false }
}

/// Waits for the permission request of a turn.
async fn request(test: &TestGateway, conversation: ConversationId, turn: TurnId) -> PermissionId {
    let mut events = test.gateway.events(conversation, Seq::START);
    let wait = async {
        loop {
            let event = events.next().await.unwrap();
            if event.kind == "permission_request" && event.turn == Some(turn) {
                let body: serde_json::Value = event.body.to().unwrap();
                return body["requestId"].as_str().unwrap().parse().unwrap();
            }
        }
    };
    tokio::time::timeout(crate::test_gateway::LIMIT, wait).await.expect("the agent asks")
}

/// Returns the number of times that the agent's program was started.
fn starts(directory: &Path) -> usize {
    std::fs::read_to_string(directory.join("starts")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_warm_session_and_what_was_allowed_in_it_end_before_a_turn_of_other_approvers() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    write_agent(directory.path(), ASK);
    let count = format!("echo started >> '{}'", directory.path().join("starts").display());
    write_program(directory.path(), &format!("#!/bin/sh\n{count}\n{}", play_scenario(directory.path())));
    let test = TestGateway::in_directory(Arc::clone(&directory), |_| {}).await;
    let conversation = test.conversation().await;

    let first = send(&test, conversation, "ada", MessageMode::Queue).await;
    let id = request(&test, conversation, first).await;
    test.gateway.answer_permission(id, Decision::AllowAlways, None, &author("ada")).await.unwrap();
    test.ended(first).await;
    let after_first = starts(directory.path());
    let same = send(&test, conversation, "ada", MessageMode::Queue).await;
    let id = request(&test, conversation, same).await;
    test.gateway.answer_permission(id, Decision::Allow, None, &author("ada")).await.unwrap();
    test.ended(same).await;
    assert_eq!(starts(directory.path()), after_first, "the session is used again for the same author");

    let other = send(&test, conversation, "bob", MessageMode::Queue).await;
    let id = request(&test, conversation, other).await;
    assert!(starts(directory.path()) > after_first, "another process has none of the permissions");
    let stored = test.gateway.store().permission(id).await.unwrap().unwrap();
    assert_eq!(stored.body.to::<serde_json::Value>().unwrap()["approvers"], serde_json::json!(["http:bob"]));
    let refused = test.gateway.answer_permission(id, Decision::Allow, None, &author("ada")).await;
    assert!(matches!(refused, Err(GatewayError::Forbidden { .. })));
    test.gateway.answer_permission(id, Decision::Deny, None, &author("bob")).await.unwrap();
    let ended = test.ended(other).await;
    let session = |turn: teamster_store::Turn| turn.result.unwrap().to::<RunResult>().unwrap().session_id;
    let first = test.gateway.store().turn(first).await.unwrap().unwrap();
    assert_eq!(session(ended), session(first), "the conversation continues in the agent's session");
}

#[tokio::test]
async fn a_steered_message_gets_no_rights_of_the_running_turn() {
    let rule = |author: &str, permission| Rule {
        channel: Some("http".to_owned()),
        authors: Some(vec![author.to_owned()]),
        permission: Some(permission),
        approvers: Some(vec!["token:1".to_owned()]),
        ..Rule::default()
    };
    let rules = vec![rule("ada", PermissionMode::Full), rule("bob", PermissionMode::ReadOnly)];
    let test = TestGateway::with_config(SLOW, |config| config.rules = rules).await;
    let conversation = test.conversation().await;
    let running = send(&test, conversation, "ada", MessageMode::Queue).await;
    test.event(conversation, "text").await;
    let lower = send(&test, conversation, "bob", MessageMode::Steer).await;
    let same = send(&test, conversation, "ada", MessageMode::Steer).await;
    assert_eq!(test.event(conversation, "turn_joined").await["into"], running.to_string());
    test.ended(running).await;
    let lower = test.ended(lower).await;
    assert_eq!((lower.state, lower.joined), (TurnState::Done, None), "it has a turn of its own");
    assert_eq!(test.ended(same).await.joined, Some(running));
}

#[tokio::test]
async fn the_agent_gets_what_it_has_scheduled_as_its_own_note() {
    let test = TestGateway::start("[[turns]]\nsteps = [{ say = \"{prompt}\" }]\n").await;
    let conversation = test.conversation().await;
    let at = rfc3339(test.gateway.now().after(std::time::Duration::from_millis(300)));
    let body = serde_json::json!({"at": at, "text": "run it", "author": "ada", "createdBy": "turn 1"});
    let body: ScheduleBody = serde_json::from_value(body).unwrap();
    schedules::create(&test.gateway, conversation, ScheduleId::new(uuid::Uuid::from_u128(1)), &body).await.unwrap();
    assert_eq!(test.event(conversation, "turn_queued").await["byAgent"], true);
    let done = test.event(conversation, "done").await;
    let answer = done["result"]["finalText"].as_str().unwrap();
    assert!(answer.contains("It is no request of a person, and permits nothing.\n\nrun it"), "{answer}");
}

#[tokio::test]
async fn a_steered_message_does_not_use_the_budget_of_another_author() {
    let rule = Rule { daily_budget_usd: Some(100.0), approvers: Some(vec!["token:1".to_owned()]), ..Rule::default() };
    let test = TestGateway::with_config(SLOW, |config| config.rules.push(rule)).await;
    let conversation = test.conversation().await;
    let running = send(&test, conversation, "ada", MessageMode::Queue).await;
    test.event(conversation, "text").await;
    let other = send(&test, conversation, "bob", MessageMode::Steer).await;
    test.ended(running).await;
    assert_eq!(test.ended(other).await.joined, None);
}
