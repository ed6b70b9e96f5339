//! A turn whose end the app-server does not report.

use std::time::Duration;

use serde_json::{Value, json};
use teamster_agents::protocol::Input;
use teamster_types::event::{ErrorCode, WarningCode};

use super::session::{TestSession, session_request};
use super::{OTHER, THREAD};

const LAST_TURN: &str = "thread/turns/list";

fn turn(id: &str, status: &str) -> Value {
    json!({"id": id, "status": status, "error": null, "items": []})
}

/// A session whose turn has given an answer.
fn answered() -> TestSession {
    let mut session = TestSession::running(&session_request());
    session.item("item/completed", &json!({"type": "agentMessage", "id": "m", "text": "Done."}));
    session
}

fn becomes(session: &mut TestSession, status: &str) {
    session.notify("thread/status/changed", json!({"status": {"type": status}}));
}

#[test]
fn the_record_of_an_idle_thread_ends_a_turn_with_a_warning() {
    let mut session = answered();
    becomes(&mut session, "idle");
    assert!(session.in_turn && session.wrote(LAST_TURN).is_none(), "idle alone ends nothing");
    session.elapse();
    assert_eq!(session.wrote(LAST_TURN).unwrap()["params"]["threadId"], THREAD);
    session.reply(LAST_TURN, &json!({"data": [turn("turn-1", "completed")]}));
    assert_eq!((session.result().text.as_str(), session.result().is_error), ("Done.", false));
    assert_eq!((session.warned(&WarningCode::TurnEndMissing), session.timer), (1, None));
    // The next turn is not ended by the late report of this one.
    session.send("More.");
    session.turn_ends("turn-1", "completed");
    assert!(session.in_turn);
    session.turn_starts("turn-2");
    session.turn_ends("turn-2", "completed");
    assert_eq!(session.warned(&WarningCode::TurnEndMissing), 0);
}

#[test]
fn a_reported_end_reads_no_record() {
    let mut session = answered();
    becomes(&mut session, "idle");
    assert!(session.timer.is_some());
    session.turn_ends("turn-1", "completed");
    assert_eq!((session.timer, session.wrote(LAST_TURN)), (None, None));
}

#[test]
fn a_turn_that_the_record_shows_as_running_continues_and_is_read_less_often() {
    let mut session = answered();
    becomes(&mut session, "idle");
    let mut waits = Vec::new();
    for _ in 0..7 {
        waits.push(session.timer.unwrap().as_secs());
        session.elapse();
        session.reply(LAST_TURN, &json!({"data": [turn("turn-1", "inProgress")]}));
        assert!(session.in_turn);
    }
    assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
    // The turn works again.
    becomes(&mut session, "active");
    session
        .item("item/started", &json!({"type": "commandExecution", "id": "c", "command": "x", "status": "inProgress"}));
    assert_eq!(session.timer, None);
    session.item("item/completed", &json!({"type": "agentMessage", "id": "n", "text": "Done now."}));
    assert_eq!(session.timer, Some(Duration::from_secs(2)));
    session.turn_ends("turn-1", "completed");
    assert_eq!(session.warned(&WarningCode::TurnEndMissing), 0);
}

#[test]
fn without_a_report_of_the_idle_thread_an_answer_is_enough_to_read_the_record() {
    let mut session = answered();
    session.elapse();
    // The first turn of a thread has no list.
    session.refuse(LAST_TURN, "list_turns is not supported yet");
    assert_eq!(session.wrote("thread/read").unwrap()["params"]["includeTurns"], true);
    session
        .reply("thread/read", &json!({"thread": {"turns": [turn("turn-0", "completed"), turn("turn-1", "failed")]}}));
    assert!(session.result().is_error);
    let mut session = TestSession::running(&session_request());
    let commentary = json!({"type": "agentMessage", "id": "m", "text": "I look.", "phase": "commentary"});
    session.item("item/completed", &commentary);
    assert_eq!(session.timer, None, "more work follows");
}

#[test]
fn a_thread_without_a_record_leaves_the_turn_to_the_limit_on_silence() {
    let mut session = answered();
    becomes(&mut session, "idle");
    session.elapse();
    session.refuse(LAST_TURN, "ephemeral threads do not support thread/turns/list");
    session.refuse("thread/read", "ephemeral threads do not support includeTurns");
    assert!(session.in_turn);
    for other in [json!({"data": [turn("turn-0", "completed")]}), json!({"data": []})] {
        session.elapse();
        session.reply(LAST_TURN, &other);
        assert!(session.in_turn, "{other}");
    }
}

#[test]
fn neither_a_request_of_the_agent_nor_another_thread_nor_an_interrupt_leads_to_the_record() {
    let mut session = answered();
    session.request_from_server(0, "item/commandExecution/requestApproval", json!({"itemId": "c", "command": "x"}));
    becomes(&mut session, "idle");
    assert_eq!(session.timer, None, "a person decides");
    let mut session = TestSession::running(&session_request());
    session.notify("thread/status/changed", json!({"threadId": OTHER, "status": {"type": "idle"}}));
    assert_eq!(session.timer, None);
    let mut session = answered();
    session.handle(Input::Interrupt);
    assert_eq!(session.timer, None);
    session.turn_ends("turn-1", "interrupted");
    session.reply("thread/backgroundTerminals/clean", &json!({}));
    assert_eq!(session.result().error_code, Some(ErrorCode::Aborted));
}
