//! Interrupted turns that continue in their session: their message is not sent again after a tool call.

use std::path::Path;
use std::sync::Arc;

use teamster::RunResult;
use teamster_gateway::config::{Config, Interrupted};
use teamster_store::{AcceptedTurn, Turn, TurnState};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::test_gateway::{LIMIT, TestGateway, play_scenario, write_agent, write_program};

const TOOL: &str = "[[turns]]\nsteps = [{ run = { command = \"rm x\", output = \"\" } }, { waitMs = 60000 }]\n";
const ECHO: &str = "[[turns]]\nsteps = [{ say = \"You said: {prompt}\" }]\n";

fn resume(config: &mut Config) {
    config.interrupted = Interrupted::Resume;
}

fn text(turn: &Turn) -> String {
    let result: RunResult = turn.result.as_ref().unwrap().to().unwrap();
    result.final_text.as_str().to_owned()
}

/// Stops a gateway as a crash does, after the agent has called a tool.
async fn interrupted() -> (Arc<TempDir>, AcceptedTurn) {
    let test = TestGateway::with_config(TOOL, resume).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await;
    test.event(conversation, "tool_result").await;
    (test.crash(), turn)
}

/// Writes an agent whose first starts run a shell command.
fn write_failing(directory: &Path, failures: u32, command: &str) {
    write_agent(directory, ECHO);
    let count = directory.join("starts");
    let program = format!(
        "#!/bin/sh\necho x >> '{count}'\nif [ $(wc -l < '{count}') -le {failures} ]; then {command}; fi\n{}",
        play_scenario(directory),
        count = count.display(),
    );
    write_program(directory, &program);
}

#[tokio::test]
async fn a_continued_turn_that_fails_before_its_first_event_continues_again() {
    let (directory, turn) = interrupted().await;
    write_failing(directory.path(), 2, "exit 3");
    let test = TestGateway::in_directory(directory, resume).await;
    let ended = test.ended(turn.turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Done, None));
    assert!(text(&ended).contains("Continue where you stopped"), "{}", text(&ended));
}

#[tokio::test]
async fn a_turn_that_has_called_a_tool_is_not_started_anew_if_its_session_is_lost() {
    let (directory, turn) = interrupted().await;
    let lost = "case \"$*\" in *--resume*) echo 'No conversation found with session ID: x' >&2; exit 1;; esac";
    write_failing(directory.path(), 100, lost);
    let test = TestGateway::in_directory(directory, resume).await;
    let ended = test.ended(turn.turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("INTERRUPTED")));
    let finished = test.event(turn.conversation, "turn_finished").await;
    assert!(finished["error"].as_str().unwrap().contains("session"), "{finished}");
}

#[tokio::test]
async fn a_turn_survives_any_number_of_restarts_of_the_gateway() {
    let mut test = TestGateway::with_config(TOOL, resume).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    for restart in 1..=4 {
        let wait = async {
            while test.log(conversation).await.iter().filter(|kind| *kind == "tool_result").count() < restart {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        timeout(LIMIT, wait).await.expect("the agent works");
        test.shutdown().await;
        test = TestGateway::in_directory(test.crash(), resume).await;
    }
    test.shutdown().await;
    write_agent(test.directory.path(), ECHO);
    let test = TestGateway::in_directory(test.crash(), resume).await;
    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Done, None));
}
