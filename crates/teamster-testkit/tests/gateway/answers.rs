//! Messages are answered in order, and streams have each event once.

use std::time::Duration;

use teamster::RunResult;
use teamster_store::{CancelOutcome, MessageMode, Seq, TurnState};
use tokio::time::timeout;

use crate::test_gateway::{LIMIT, TestGateway};

const ECHO: &str = "[[turns]]\nsteps = [{ say = \"You said: {prompt}\" }]\n";

#[tokio::test]
async fn a_message_is_answered_and_its_log_is_complete() {
    let mut test = TestGateway::start(ECHO).await;
    let conversation = test.conversation().await;
    let turn = test.ended(test.send(conversation, "hello").await.turn).await;
    assert_eq!((turn.state, turn.attempts), (TurnState::Done, 1));
    let result: RunResult = turn.result.unwrap().to().unwrap();
    assert_eq!(result.final_text.as_str(), "You said: hello");
    assert!(turn.usage.output_tokens > 0 && turn.usage.cost_micros > 0);
    let mut log = test.log(conversation).await;
    log.dedup();
    assert_eq!(log.first().unwrap(), "turn_queued");
    assert_eq!(log[1..3], ["turn_started", "init"]);
    assert_eq!(log[log.len() - 2..], ["done", "turn_finished"]);
    assert!(log.contains(&"text".to_owned()));
    test.shutdown().await;
}

#[tokio::test]
async fn the_turns_of_a_conversation_are_in_order_and_share_a_session() {
    let test = TestGateway::start(ECHO).await;
    let conversation = test.conversation().await;
    let mut turns = Vec::new();
    for number in 0..5 {
        turns.push(test.send(conversation, &format!("message {number}")).await.turn);
    }
    let mut sessions = Vec::new();
    for (number, turn) in turns.into_iter().enumerate() {
        let ended = test.ended(turn).await;
        let result: RunResult = ended.result.unwrap().to().unwrap();
        assert_eq!(result.final_text.as_str(), format!("You said: message {number}"));
        sessions.push(result.session_id);
    }
    sessions.dedup();
    assert_eq!(sessions.len(), 1);
}

#[tokio::test]
async fn a_stream_from_any_number_has_each_later_event_once() {
    let test = TestGateway::start(ECHO).await;
    let conversation = test.conversation().await;
    let live = tokio::spawn({
        let mut events = test.gateway.events(conversation, Seq::START);
        async move {
            let mut seqs = Vec::new();
            loop {
                let event = events.next().await.unwrap();
                seqs.push(event.seq.get());
                if event.kind == "turn_finished" {
                    return seqs;
                }
            }
        }
    });
    test.ended(test.send(conversation, "hello").await.turn).await;
    let live = timeout(LIMIT, live).await.unwrap().unwrap();
    let last = live.len() as u64;
    assert_eq!(live, (1..=last).collect::<Vec<_>>());
    for after in 0..last {
        let mut events = test.gateway.events(conversation, Seq::new(after));
        for expected in after + 1..=last {
            let event = timeout(LIMIT, events.next()).await.unwrap().unwrap();
            assert_eq!(event.seq.get(), expected);
        }
    }
}

#[tokio::test]
async fn an_abort_ends_the_running_turn_and_the_next_one_runs() {
    let scenario =
        "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 60000 }]\n[[turns]]\nsteps = [{ say = \"next\" }]\n";
    let test = TestGateway::start(scenario).await;
    let conversation = test.conversation().await;
    let first = test.send(conversation, "one").await.turn;
    let second = test.send(conversation, "two").await.turn;
    test.event(conversation, "text").await;
    assert_eq!(test.gateway.abort_turn(first).await.unwrap(), CancelOutcome::Requested);
    assert_eq!(test.ended(first).await.state, TurnState::Aborted);
    assert_eq!(test.ended(second).await.state, TurnState::Done);
    assert_eq!(test.gateway.abort_turn(second).await.unwrap(), CancelOutcome::Unchanged(TurnState::Done));
}

#[tokio::test]
async fn a_waiting_turn_can_be_aborted_before_it_starts() {
    let scenario = "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 60000 }]\n";
    let test = TestGateway::start(scenario).await;
    let conversation = test.conversation().await;
    let first = test.send(conversation, "one").await.turn;
    test.event(conversation, "text").await;
    let second = test.send(conversation, "two").await.turn;
    assert_eq!(test.gateway.abort_turn(second).await.unwrap(), CancelOutcome::Aborted);
    let ended = test.ended(second).await;
    assert_eq!((ended.state, ended.attempts), (TurnState::Aborted, 0));
    test.gateway.abort_turn(first).await.unwrap();
    test.ended(first).await;
}

#[tokio::test]
async fn a_steered_message_ends_with_the_running_turn() {
    let scenario = "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 500 }, { say = \"end\" }]\n";
    let test = TestGateway::start(scenario).await;
    let conversation = test.conversation().await;
    let first = test.send(conversation, "one").await.turn;
    test.event(conversation, "text").await;
    let second = test.send_as(conversation, "more", MessageMode::Steer).await.turn;
    assert_eq!(test.event(conversation, "turn_joined").await["into"], first.to_string());
    assert_eq!(test.ended(first).await.state, TurnState::Done);
    let joined = test.ended(second).await;
    assert_eq!((joined.state, joined.joined), (TurnState::Done, Some(first)));
}

#[tokio::test]
async fn running_turns_are_bounded_and_other_conversations_wait() {
    let scenario = "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 100 }]\n";
    let test = TestGateway::with_config(scenario, |config| config.limits.max_running = 2).await;
    let mut turns = Vec::new();
    for _ in 0..6 {
        let conversation = test.conversation().await;
        turns.push(test.send(conversation, "hello").await.turn);
    }
    let mut most = 0;
    for turn in turns {
        loop {
            let status = test.gateway.store().status(test.gateway.now()).await.unwrap();
            most = most.max(status.running_turns);
            if test.gateway.store().turn(turn).await.unwrap().unwrap().state == TurnState::Done {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert!((1..=2).contains(&most), "{most}");
}
