//! Verifies the promises from what the API and the receiver show.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::client::Client;
use crate::follower::Follower;
use crate::receiver::Receiver;
use crate::traffic::{Address, SentMessage};
use crate::webhook::{Approvals, STRANGER};
use crate::{attempts, chats};

/// The codes with which a turn may fail here: what the agents do, and what a kill in the middle of a turn means.
const EXPECTED: [&str; 9] = [
    "AUTH",
    "CLI_EXIT",
    "DEADLINE_EXCEEDED",
    "EVENT_LIMIT",
    "INTERRUPTED",
    "OVERLOADED",
    "PARKED",
    "PROVIDER",
    "RATE_LIMIT",
];

/// What the test has done and seen.
pub(crate) struct Observations<'a> {
    pub(crate) client: &'a Client,
    pub(crate) receiver: &'a Receiver,
    pub(crate) sent: &'a [SentMessage],
    pub(crate) approvals: &'a Approvals,
    /// The subscribers of single conversations.
    pub(crate) followers: Vec<(Address, Follower)>,
    /// The subscriber of all conversations.
    pub(crate) feed: Option<Follower>,
}

/// Checks all logs, all chats and all streams. Returns a summary: how many turns ended in which way.
pub(crate) async fn check(observations: Observations<'_>) -> String {
    let Observations { client, receiver, sent, approvals, followers, feed } = observations;
    let mut logs = BTreeMap::new();
    for (address, conversation) in client.conversations().await {
        let id = conversation["id"].as_str().expect("an id").to_owned();
        let log = client.log(&id).await;
        logs.insert(address, (id, log));
    }
    let (mut ends, mut joined) = (BTreeMap::new(), Vec::new());
    let approved = approvals.all();
    for (address, (id, log)) in &logs {
        let sent: Vec<_> = sent.iter().filter(|message| message.address == *address).collect();
        let seqs: Vec<_> = log.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "the log of {id} has no gap");
        joined.extend(check_turns(id, log, &sent, &mut ends));
        check_permissions(id, log, &approved);
    }
    for (turn, state) in joined {
        let found = client.get(&format!("/v1/turns/{turn}")).await;
        assert_eq!(found["state"], state, "{turn} ends with the turn into which its message went");
    }
    for (address, follower) in followers {
        let (id, log) = &logs[&address];
        assert_eq!(follower.events(log.len()).await, *log, "the stream of {id} has each event once, in order");
    }
    if let Some(feed) = feed {
        check_feed(feed, &logs).await;
    }
    for state in ["failed", "unknown"] {
        let lost = client.list(&format!("/v1/deliveries?state={state}")).await;
        assert!(lost.is_empty(), "a delivery is given up: {lost:?}");
    }
    let received = receiver.received();
    assert!(received.problems.is_empty(), "{:#?}", received.problems);
    chats::check(&received.items, &logs);
    let repeats: u32 = received.items.iter().map(|item| item.times - 1).sum();
    let (requests, items) = (received.requests, received.items.len());
    format!("{ends:?}; {items} items for chats by {requests} requests, {repeats} of them repeats")
}

fn of_type<'a>(log: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    log.iter().filter(move |event| event["type"] == kind)
}

/// Returns the turns whose messages went into other turns, with the states of those.
fn check_turns(
    id: &str,
    log: &[Value],
    sent: &[&SentMessage],
    ends: &mut BTreeMap<String, u32>,
) -> Vec<(String, Value)> {
    let turn = |event: &Value| event["turnId"].as_str().expect("a turn").to_owned();
    let queued: Vec<_> = of_type(log, "turn_queued").collect();
    let texts: Vec<_> = queued.iter().map(|event| event["text"].as_str().expect("a text")).collect();
    let expected: Vec<_> = sent.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, expected, "{id}: each message is accepted once, in order");
    let turns: Vec<_> = queued.into_iter().map(turn).collect();
    for (turn, message) in turns.iter().zip(sent) {
        assert!(message.turn.as_ref().is_none_or(|known| known == turn), "{id}: {message:?} has the turn {turn}");
    }
    let mut running: Option<String> = None;
    for event in log {
        match event["type"].as_str().expect("a type") {
            "turn_started" => {
                let starts = turn(event);
                assert!(running.as_ref().is_none_or(|running| *running == starts), "{id}: two turns at once");
                running = Some(starts);
            }
            "turn_finished" => running = None,
            _ => {}
        }
    }
    let aborted: BTreeSet<_> =
        turns.iter().zip(sent).filter(|(_, message)| message.is_aborted).map(|(turn, _)| turn).collect();
    let finished: Vec<_> = of_type(log, "turn_finished").map(turn).collect();
    let distinct: BTreeSet<_> = finished.iter().collect();
    assert_eq!(finished.len(), distinct.len(), "{id}: each turn ends once");
    let joined = turns.iter().zip(sent).filter(|(turn, _)| !distinct.contains(turn));
    let joined: Vec<_> = joined.map(|(turn, message)| (turn.clone(), lead_state(log, turn, message))).collect();
    // A turn that is aborted while it waits, and one whose message went into another turn, end before those that wait.
    let started: BTreeSet<_> = of_type(log, "turn_started").map(turn).collect();
    let waited = |turn: &String| !aborted.contains(turn) && distinct.contains(turn) && started.contains(turn);
    let in_order = |list: &[String]| list.iter().filter(|turn| waited(turn)).cloned().collect::<Vec<_>>();
    assert_eq!(in_order(&finished), in_order(&turns), "{id}: turns end in order:\n{}", outline(log));
    *ends.entry("joined".to_owned()).or_default() += u32::try_from(joined.len()).expect("a small number");
    for (turn, message) in turns.iter().zip(sent).filter(|(turn, _)| distinct.contains(turn)) {
        let events: Vec<_> = log.iter().filter(|event| event["turnId"] == turn.as_str()).cloned().collect();
        check_turn(turn, message, &events, ends);
    }
    joined
}

/// Returns the events of turns in a form for people.
fn outline(log: &[Value]) -> String {
    let line = |event: &Value| {
        let [kind, turn, into, text, code] =
            ["type", "turnId", "into", "text", "errorCode"].map(|name| event[name].as_str().unwrap_or_default());
        kind.starts_with("turn_").then(|| format!("{} {kind} {turn} {into}{text}{code}\n", event["seq"]))
    };
    log.iter().filter_map(line).collect()
}

/// Returns the state of the turn into which a message went. It ends after that.
fn lead_state(log: &[Value], turn: &str, message: &SentMessage) -> Value {
    assert!(message.is_steered, "{turn} has no end: {message:?}");
    let last = log.iter().rfind(|event| event["turnId"] == turn).expect("an event");
    assert_eq!(last["type"], "turn_joined", "{turn} has no end: {last}");
    let ends = |event: &&Value| event["type"] == "turn_finished" && event["turnId"] == last["into"];
    let end = log.iter().find(ends).unwrap_or_else(|| panic!("{turn}: its message went into no turn: {last}"));
    assert!(end["seq"].as_u64() > last["seq"].as_u64(), "{turn}: its message went into a turn that had ended");
    end["state"].clone()
}

fn check_turn(turn: &str, message: &SentMessage, events: &[Value], ends: &mut BTreeMap<String, u32>) {
    let end = of_type(events, "turn_finished").next().expect("an end");
    attempts::check(turn, events, end, message.is_steered);
    let done: Vec<_> = of_type(events, "done").collect();
    assert!(done.len() <= 1, "{turn}: more than one answer");
    let name = match end["state"].as_str().expect("a state") {
        "done" => {
            let answer = done[0]["result"]["finalText"].as_str().expect("a text");
            let is_edited = of_type(events, "turn_edited").next().is_some();
            let text = message.edited.as_ref().filter(|_| is_edited).unwrap_or(&message.text);
            assert!(answer.ends_with(text), "{turn}: {answer:?} is no answer to {text:?}");
            "done"
        }
        "failed" => {
            let code = end["errorCode"].as_str().expect("a code");
            assert!(EXPECTED.contains(&code), "{turn}: {end}");
            code
        }
        "aborted" => {
            assert!(message.is_aborted, "{turn}: no client has aborted it");
            "aborted"
        }
        other => panic!("{turn}: ended as {other}"),
    };
    *ends.entry(name.to_owned()).or_default() += 1;
    let is_cut = matches!(end["errorCode"].as_str(), Some("INTERRUPTED" | "PARKED" | "ABORTED"));
    for call in of_type(events, "tool_use") {
        let results = of_type(events, "tool_result").filter(|result| result["toolId"] == call["toolId"]).count();
        // A kill leaves a call without a result; its turn is reported as interrupted.
        assert!(results >= 1 || is_cut, "{turn}: a call without a result");
    }
}

/// Each request is closed once. A call runs only if its request was allowed, and only a client allows one.
fn check_permissions(id: &str, log: &[Value], approved: &BTreeSet<String>) {
    let mut open = BTreeMap::new();
    // The calls that must not run.
    let mut forbidden = BTreeSet::new();
    for event in log {
        let text = |name: &str| event[name].as_str().expect("a text").to_owned();
        match event["type"].as_str().expect("a type") {
            "turn_started" => forbidden.clear(),
            "permission_request" => {
                forbidden.insert(text("toolId"));
                open.insert(text("requestId"), text("toolId"));
            }
            "permission_answered" => {
                let request = text("requestId");
                let tool = open.remove(&request).unwrap_or_else(|| panic!("{id}: {request} is answered once"));
                if text("decision").starts_with("allow") {
                    assert!(approved.contains(&request), "{id}: {request} was allowed by no client");
                    assert!(!text("by").ends_with(STRANGER), "{id}: a stranger has allowed {request}");
                    forbidden.remove(&tool);
                }
            }
            "tool_result" if forbidden.contains(&text("toolId")) => {
                assert_eq!(event["isError"], true, "{id}: a call has run without permission: {event}");
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{id}: requests without an end: {open:?}");
}

/// The stream of all conversations has the events of all logs, those of one conversation in order.
async fn check_feed(feed: Follower, logs: &BTreeMap<Address, (String, Vec<Value>)>) {
    let count = logs.values().map(|(_, log)| log.len()).sum();
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for mut event in feed.events(count).await {
        let id = event.as_object_mut().expect("an event").remove("conversationId").expect("a conversation");
        found.entry(id.as_str().expect("an id").to_owned()).or_default().push(event);
    }
    for (id, log) in logs.values().filter(|(_, log)| !log.is_empty()) {
        assert_eq!(found.remove(id).as_ref(), Some(log), "the stream of all conversations has the log of {id}");
    }
    assert!(found.is_empty(), "the stream has other events: {found:?}");
}
