//! Verifies the promises from the logs alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::client::{Client, SentMessage};

/// The codes with which a turn may fail here: what the agents do, and what a kill in the middle of a turn means.
const EXPECTED: [&str; 7] =
    ["CLI_EXIT", "CLI_SIGNALED", "OVERLOADED", "DEADLINE_EXCEEDED", "INTERRUPTED", "PARKED", "PROVIDER"];

/// Checks all logs. Returns a summary: how many turns ended in which way.
pub(crate) async fn check(
    client: &Client,
    conversations: &[String],
    sent: &[SentMessage],
    approved: &BTreeSet<String>,
) -> String {
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    for conversation in conversations {
        let log = client.log(conversation).await;
        let sent: Vec<_> = sent.iter().filter(|message| message.conversation == *conversation).collect();
        let seqs: Vec<_> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "the log of {conversation} has no gap");
        check_turns(conversation, &log, &sent, &mut ends);
        check_permissions(&log, approved);
    }
    format!("{ends:?}")
}

fn of_type<'a>(log: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    log.iter().filter(move |event| event["type"] == kind)
}

fn check_turns(conversation: &str, log: &[Value], sent: &[&SentMessage], ends: &mut BTreeMap<String, u32>) {
    let turn = |event: &Value| event["turnId"].as_str().unwrap().to_owned();
    let queued: Vec<_> = of_type(log, "turn_queued").map(turn).collect();
    let expected: Vec<_> = sent.iter().map(|message| message.turn.clone()).collect();
    assert_eq!(queued, expected, "{conversation}: each message is accepted once, in order");
    let finished: Vec<_> = of_type(log, "turn_finished").map(turn).collect();
    assert_eq!(finished, expected, "{conversation}: each turn ends once, in order");
    let mut running: Option<String> = None;
    for event in log {
        match event["type"].as_str().unwrap() {
            "turn_started" => {
                let starts = turn(event);
                assert!(running.as_ref().is_none_or(|running| *running == starts), "{conversation}: two turns at once");
                running = Some(starts);
            }
            "turn_finished" => running = None,
            _ => {}
        }
    }
    for message in sent {
        let events: Vec<_> = log.iter().filter(|event| event["turnId"] == message.turn.as_str()).cloned().collect();
        check_turn(message, &events, ends);
    }
}

fn check_turn(message: &SentMessage, events: &[Value], ends: &mut BTreeMap<String, u32>) {
    let end = of_type(events, "turn_finished").next().unwrap();
    let done: Vec<_> = of_type(events, "done").collect();
    assert!(done.len() <= 1, "{}: more than one answer", message.turn);
    match end["state"].as_str().unwrap() {
        "done" => {
            let answer = done[0]["result"]["finalText"].as_str().unwrap();
            assert!(answer.ends_with(&message.text), "{}: {answer:?} is no answer to {:?}", message.turn, message.text);
            *ends.entry("done".to_owned()).or_default() += 1;
        }
        "failed" => {
            let code = end["errorCode"].as_str().unwrap();
            assert!(EXPECTED.contains(&code), "{}: {end}", message.turn);
            *ends.entry(code.to_owned()).or_default() += 1;
        }
        other => panic!("{}: ended as {other}", message.turn),
    }
    for call in of_type(events, "tool_use") {
        let results = of_type(events, "tool_result").filter(|result| result["toolId"] == call["toolId"]).count();
        // A kill leaves a call without a result; its turn is reported as interrupted.
        let interrupted = end["errorCode"] == "INTERRUPTED" || end["errorCode"] == "PARKED";
        assert!(results >= 1 || interrupted, "{}: a call without a result", message.turn);
    }
}

fn check_permissions(log: &[Value], approved: &BTreeSet<String>) {
    let mut open = BTreeSet::new();
    for event in log {
        match event["type"].as_str().unwrap() {
            "permission_request" => {
                open.insert(event["requestId"].as_str().unwrap().to_owned());
            }
            "permission_answered" => {
                let id = event["requestId"].as_str().unwrap();
                assert!(open.remove(id), "{id} is answered once");
                let is_allowed = event["decision"].as_str().unwrap().starts_with("allow");
                assert!(!is_allowed || approved.contains(id), "{id} was allowed without an answer");
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "requests without an end: {open:?}");
}
