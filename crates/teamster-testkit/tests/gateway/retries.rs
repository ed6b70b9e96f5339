//! Failed attempts: which are repeated, and what the log shows.

use std::time::Duration;

use teamster_store::TurnState;

use crate::test_gateway::{TestGateway, write_agent};

#[tokio::test]
async fn a_crash_after_text_is_retried_and_its_text_is_void() {
    let test = TestGateway::start("[[turns]]\nsteps = [{ say = \"half\" }, { exit = 3 }]\n").await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    assert_eq!(test.event(conversation, "turn_retrying").await["code"], "CLI_EXIT");
    write_agent(test.directory.path(), "[[turns]]\nsteps = [{ say = \"whole\" }]\n");
    let ended = test.ended(turn).await;
    assert_eq!(ended.state, TurnState::Done);
    assert!(ended.attempts >= 2);
    let log = test.log(conversation).await;
    let at = |kind: &str| log.iter().position(|found| found == kind).unwrap();
    assert!(at("retract") < at("turn_retrying"));
    assert_eq!(log.iter().filter(|kind| *kind == "done").count(), 1, "{log:?}");
    assert_eq!(log.iter().filter(|kind| *kind == "error").count(), 0, "{log:?}");
}

#[tokio::test]
async fn an_agent_that_always_crashes_is_tried_four_times() {
    let test = TestGateway::start("[[turns]]\nsteps = [{ exit = 3 }]\n").await;
    let conversation = test.conversation().await;
    let ended = test.ended(test.send(conversation, "hello").await.turn).await;
    assert_eq!((ended.state, ended.attempts, ended.error_code.as_deref()), (TurnState::Failed, 4, Some("CLI_EXIT")));
    let log = test.log(conversation).await;
    assert_eq!(log[log.len() - 3..], ["error", "done", "turn_finished"]);
}

#[tokio::test]
async fn a_turn_that_has_called_a_tool_is_not_repeated() {
    let scenario = "[[turns]]\nsteps = [{ run = { command = \"rm x\", output = \"\" } }, { exit = 3 }]\n";
    let test = TestGateway::start(scenario).await;
    let conversation = test.conversation().await;
    let ended = test.ended(test.send(conversation, "hello").await.turn).await;
    assert_eq!((ended.state, ended.attempts), (TurnState::Failed, 1));
}

#[tokio::test]
async fn a_missing_program_is_a_visible_failure() {
    let test = TestGateway::with_config("", |config| config.turn.cli_path = Some("/nonexistent/claude".into())).await;
    let conversation = test.conversation().await;
    let ended = test.ended(test.send(conversation, "hello").await.turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("CLI_NOT_FOUND")));
    assert!(test.event(conversation, "turn_finished").await["error"].as_str().unwrap().contains("/nonexistent/claude"));
}

#[tokio::test]
async fn a_silent_agent_is_stopped_by_the_deadline() {
    let scenario = "[[turns]]\nsteps = [{ waitMs = 60000 }]\n";
    let change = |config: &mut teamster_gateway::config::Config| {
        config.turn.deadline = Some(Duration::from_millis(300));
        config.retries.max = 0;
    };
    let test = TestGateway::with_config(scenario, change).await;
    let conversation = test.conversation().await;
    let ended = test.ended(test.send(conversation, "hello").await.turn).await;
    assert_eq!(ended.error_code.as_deref(), Some("DEADLINE_EXCEEDED"));
}

#[tokio::test]
async fn a_flood_of_events_ends_the_turn_at_its_limit() {
    let steps = "{ run = { command = \"x\", output = \"\" } }, ".repeat(40);
    let scenario = format!("[[turns]]\nsteps = [{steps}]\n");
    let test = TestGateway::with_config(&scenario, |config| config.limits.events_per_turn = 20).await;
    let conversation = test.conversation().await;
    let ended = test.ended(test.send(conversation, "hello").await.turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("EVENT_LIMIT")));
    let done = test.event(conversation, "done").await;
    assert_eq!(
        done["result"]["sessionId"],
        test.event(conversation, "init").await["sessionId"],
        "the session is kept: {done}"
    );
}
