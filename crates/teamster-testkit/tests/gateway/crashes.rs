//! A gateway that stops in the middle of a turn, and another one that continues.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use teamster::RunResult;
use teamster_gateway::config::{Config, Interrupted};
use teamster_store::{
    AcceptedTurn, ClaimRequest, HostId, SqliteOptions, SqliteStore, Turn, TurnState, WorkStore as _, WorkerId,
};

use crate::test_gateway::{TestGateway, play_scenario, write_agent, write_program};

const SLOW: &str = "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 60000 }]\n";
const QUICK: &str = "[[turns]]\nsteps = [{ say = \"You said: {prompt}\" }]\n";

#[tokio::test]
async fn a_turn_without_effects_runs_again_after_a_crash() {
    let test = TestGateway::start("[[turns]]\nsteps = [{ waitMs = 60000 }]\n").await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "init").await;
    let directory = test.crash();
    write_agent(directory.path(), QUICK);
    let test = TestGateway::in_directory(directory, |_| {}).await;
    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.attempts), (TurnState::Done, 2));
    test.log(conversation).await;
}

#[tokio::test]
async fn a_turn_with_text_is_reported_as_interrupted() {
    let test = TestGateway::start(SLOW).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    let next = test.send(conversation, "next").await.turn;
    test.event(conversation, "text").await;
    let directory = test.crash();
    write_agent(directory.path(), QUICK);
    let test = TestGateway::in_directory(directory, |_| {}).await;
    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("INTERRUPTED")));
    assert_eq!(test.ended(next).await.state, TurnState::Done, "the queue continues");
}

/// Interrupts the first turn of a conversation after a text, by a crash or a shutdown. Returns the next gateway, the
/// conversation and the id of the session.
async fn after_an_interruption(is_crash: bool) -> (TestGateway, AcceptedTurn, String) {
    let mut test = TestGateway::start(SLOW).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await;
    test.event(conversation, "text").await;
    let session = test.event(conversation, "init").await["sessionId"].as_str().unwrap().to_owned();
    if !is_crash {
        test.shutdown().await;
    }
    let directory = test.crash();
    write_agent(directory.path(), QUICK);
    (TestGateway::in_directory(directory, |_| {}).await, turn, session)
}

fn result(turn: &Turn) -> RunResult {
    turn.result.as_ref().unwrap().to().unwrap()
}

#[tokio::test]
async fn the_message_after_an_interrupted_turn_resumes_its_session() {
    for is_crash in [true, false] {
        let (test, AcceptedTurn { conversation, turn, .. }, session) = after_an_interruption(is_crash).await;
        let interrupted = test.ended(turn).await;
        assert_eq!(interrupted.error_code.as_deref(), Some("INTERRUPTED"));
        assert_eq!(result(&interrupted).session_id.unwrap().as_str(), session);
        assert_eq!(result(&interrupted).final_text.as_str(), "begin");
        let next = test.ended(test.send(conversation, "continue").await.turn).await;
        assert_eq!(result(&next).final_text.as_str(), "You said: continue", "the session has the history");
        assert_eq!(result(&next).session_id.unwrap().as_str(), session);
        assert!(!test.log(conversation).await.contains(&"session_reset".to_owned()));
    }
}

#[tokio::test]
async fn if_the_session_of_an_interrupted_turn_is_lost_the_loss_is_reported_and_the_next_one_gets_the_partial_answer() {
    let (test, AcceptedTurn { conversation, turn, .. }, _) = after_an_interruption(true).await;
    test.ended(turn).await;
    let lost = "case \"$*\" in *--resume*) echo 'No conversation found with session ID: x' >&2; exit 1;; esac";
    let directory = test.directory.path();
    write_program(directory, &format!("#!/bin/sh\n{lost}\n{}", play_scenario(directory)));
    let next = test.ended(test.send(conversation, "continue").await.turn).await;
    let answer = result(&next).final_text.as_str().to_owned();
    assert!(answer.contains(r#"{"role":"agent","text":"begin"}"#) && answer.ends_with("continue"), "{answer}");
    assert!(test.log(conversation).await.contains(&"session_reset".to_owned()));
}

#[tokio::test]
async fn an_interrupted_turn_continues_in_its_session_if_the_operator_wants_that() {
    let change = |config: &mut Config| config.interrupted = Interrupted::Resume;
    let test = TestGateway::with_config(SLOW, change).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "text").await;
    let session = test.event(conversation, "init").await["sessionId"].as_str().unwrap().to_owned();
    let directory = test.crash();
    write_agent(directory.path(), QUICK);
    let test = TestGateway::in_directory(directory, change).await;
    let ended = test.ended(turn).await;
    assert_eq!(ended.state, TurnState::Done);
    let result: RunResult = ended.result.unwrap().to().unwrap();
    assert_eq!(result.session_id.unwrap().as_str(), session);
    assert!(result.final_text.as_str().contains("Continue where you stopped"));
}

#[tokio::test]
async fn a_crash_between_a_failed_attempt_and_the_next_one_is_no_interruption() {
    let change = |config: &mut Config| config.retries.first_delay = Duration::from_mins(1);
    let test = TestGateway::with_config("[[turns]]\nsteps = [{ say = \"half\" }, { exit = 3 }]\n", change).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "turn_retrying").await;
    let now = test.gateway.now();
    let directory = test.crash();
    write_agent(directory.path(), QUICK);
    // A worker claims the turn when its delay has passed, and dies before it starts the attempt.
    let store = SqliteStore::open(directory.path().join("store.db"), SqliteOptions::default()).await.unwrap();
    let worker = WorkerId::new("dead");
    let request = ClaimRequest {
        worker: worker.clone(),
        host: HostId::new("test"),
        lease_for: Duration::from_secs(30),
        max_running: 1,
        max_running_per_chat: 1,
        affinity: Duration::ZERO,
    };
    let claim = store.claim(request, now.after(Duration::from_mins(2))).await.unwrap().unwrap();
    assert_eq!(claim.turn.id, turn);
    store.expire_leases(worker, now).await.unwrap();
    store.close().await;
    let test = TestGateway::in_directory(directory, |_| {}).await;
    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.attempts, ended.error_code.as_deref()), (TurnState::Done, 2, None));
}

#[tokio::test]
async fn a_shutdown_puts_a_turn_without_effects_back_and_its_attempt_does_not_count() {
    let mut test = TestGateway::start("[[turns]]\nsteps = [{ waitMs = 60000 }]\n").await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "init").await;
    test.shutdown().await;
    let waiting = test.gateway.store().turn(turn).await.unwrap().unwrap();
    assert_eq!((waiting.state, waiting.attempts), (TurnState::Queued, 0));
    let directory = test.crash();
    write_agent(directory.path(), QUICK);
    let test = TestGateway::in_directory(directory, |_| {}).await;
    assert_eq!(test.ended(turn).await.state, TurnState::Done);
}

#[tokio::test]
async fn a_shutdown_waits_for_a_turn_that_ends_in_time() {
    let scenario = "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 300 }]\n";
    let change = |config: &mut Config| config.timing.shutdown_timeout = Duration::from_secs(10);
    let mut test = TestGateway::with_config(scenario, change).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "text").await;
    test.shutdown().await;
    assert_eq!(test.gateway.store().turn(turn).await.unwrap().unwrap().state, TurnState::Done);
}

#[tokio::test]
async fn a_turn_whose_worker_dies_three_times_is_parked() {
    let mut test = TestGateway::start("[[turns]]\nsteps = [{ waitMs = 60000 }]\n").await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    for attempt in 1..=3 {
        loop {
            let found = test.gateway.store().turn(turn).await.unwrap().unwrap();
            if found.attempts == attempt && found.state == TurnState::Running {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        test = TestGateway::in_directory(test.crash(), |_| {}).await;
    }
    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("PARKED")));
    let again = test.gateway.retry_turn(turn).await.unwrap();
    assert_eq!(again.attempts, 0);
}

#[tokio::test]
async fn while_agents_of_the_dead_process_may_run_its_turn_waits_for_the_end_of_its_lease() {
    let change = |config: &mut Config| config.timing.lease = Duration::from_secs(3);
    let test = TestGateway::with_config(SLOW, change).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "text").await;
    let directory = test.crash();
    // The processes of the ledger cannot be searched: others could have changed it.
    std::fs::set_permissions(directory.path().join("ledger"), Permissions::from_mode(0o777)).unwrap();
    let started = Instant::now();
    let test = TestGateway::in_directory(directory, change).await;
    let ended = test.ended(turn).await;
    assert_eq!(ended.error_code.as_deref(), Some("INTERRUPTED"));
    assert!(started.elapsed() > Duration::from_secs(1), "{:?}", started.elapsed());
}
