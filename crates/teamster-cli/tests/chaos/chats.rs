//! Verifies what the receiver of the webhook has got against the logs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::receiver::Item;
use crate::traffic::Address;

/// The logs by their addresses, with the ids of the conversations.
type Logs = BTreeMap<Address, (String, Vec<Value>)>;

/// Checks all items: each conversation has those that its log demands, in order, and no others.
pub(crate) fn check(items: &[Item], logs: &Logs) {
    let mut by_address: BTreeMap<Address, Vec<&Item>> = BTreeMap::new();
    for item in items {
        let target = |name: &str| item.body["target"][name].as_str().expect("a target").to_owned();
        let address = Address::Webhook { chat: target("chat"), thread: target("thread") };
        by_address.entry(address).or_default().push(item);
    }
    for (address, (id, log)) in logs.iter().filter(|(address, _)| matches!(address, Address::Webhook { .. })) {
        let items = by_address.remove(address).unwrap_or_default();
        for item in &items {
            assert_eq!(item.body["conversationId"], id.as_str(), "{item:?}");
        }
        check_ends(id, log, &items);
        check_prompts(id, log, &items);
    }
    assert!(by_address.is_empty(), "items for unknown chats: {by_address:?}");
}

/// Each turn has one answer or failure, which is its last item. The items of turns are in the order of the turns.
fn check_ends(id: &str, log: &[Value], items: &[&Item]) {
    let mut items = items.iter();
    for end in log.iter().filter(|event| event["type"] == "turn_finished") {
        let turn = &end["turnId"];
        let last = items.find(|item| {
            assert_eq!(item.body["turnId"], *turn, "{id}: items of turns are in order: {item:?}");
            matches!(item.body["type"].as_str(), Some("answer" | "failure"))
        });
        let last = last.unwrap_or_else(|| panic!("{id}: the turn {turn} has no answer in the chat"));
        if end["state"] == "done" {
            let done = log.iter().find(|event| event["type"] == "done" && event["turnId"] == *turn).expect("a result");
            let found = (&last.body["type"], &last.body["text"], &last.body["sessionId"]);
            let result = &done["result"];
            assert_eq!(found, (&"answer".into(), &result["finalText"], &result["sessionId"]), "{id}");
        } else {
            assert_eq!((&last.body["type"], &last.body["code"]), (&"failure".into(), &end["errorCode"]), "{id}");
        }
    }
    let rest: Vec<_> = items.collect();
    assert!(rest.is_empty(), "{id}: items after the end of the last turn: {rest:?}");
}

/// Each permission request is shown once, and then its outcome once.
fn check_prompts(id: &str, log: &[Value], items: &[&Item]) {
    let mut outcomes: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut shown: BTreeMap<&str, bool> = BTreeMap::new();
    for event in log.iter().filter(|event| event["type"] == "permission_answered") {
        outcomes.insert(event["requestId"].as_str().expect("an id"), &event["decision"]);
    }
    for item in items {
        let request = item.body["requestId"].as_str().unwrap_or_default();
        match item.body["type"].as_str() {
            Some("permission_request") => {
                assert_eq!(shown.insert(request, false), None, "{id}: {request} is shown once");
            }
            Some("permission_closed") => {
                assert_eq!(shown.insert(request, true), Some(false), "{id}: {request} is closed once");
                assert_eq!(outcomes.get(request), Some(&&item.body["outcome"]), "{id}: the outcome of {request}");
            }
            _ => {}
        }
    }
    assert!(shown.values().all(|is_closed| *is_closed), "{id}: requests that stay open in the chat: {shown:?}");
    assert_eq!(shown.len(), outcomes.len(), "{id}: the chat shows each request of the log");
}
