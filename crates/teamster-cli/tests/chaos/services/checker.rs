//! Verifies what people see in the chats against the logs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{CHATS, Chat, Service, Services, Shown, person_of};
use crate::client::Client;

/// The letters of the mark of a message that the service may have twice.
const REPEAT: &str = "possiblyarepeat";

/// What the checker has counted.
#[derive(Debug, Default)]
struct Counts {
    answers: usize,
    failures: usize,
    /// Answers that are in the chat twice.
    doubles: usize,
}

/// Checks all chats. Returns a summary for people.
pub(crate) async fn check(services: &Services, client: &Client) -> String {
    let mut logs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for conversation in client.list("/v1/conversations").await {
        let log = client.log(conversation["id"].as_str().expect("an id")).await;
        let first = texts_of(&log).next().expect("a conversation starts with a message").to_owned();
        assert!(logs.insert(first, log).is_none(), "two conversations start with the same message");
    }
    let written = services.written().clone();
    let mut summary = String::new();
    for service in services.all() {
        let mut counts = Counts::default();
        for ((_, chat), texts) in written.iter().filter(|((name, _), _)| *name == service.name()) {
            let first = logs.keys().find(|first| texts.contains(first)).cloned();
            let log = first.and_then(|first| logs.remove(&first)).unwrap_or_else(|| panic!("{} is accepted", texts[0]));
            check_chat(service.as_ref(), *chat, texts, &log, &mut counts);
        }
        write!(summary, "{}: {counts:?}; ", service.name()).expect("text");
    }
    assert!(logs.is_empty(), "conversations of unknown chats: {:?}", logs.keys());
    summary
}

fn texts_of(log: &[Value]) -> impl Iterator<Item = &str> {
    log.iter().filter(|event| event["type"] == "turn_queued").filter_map(|event| event["text"].as_str())
}

fn check_chat(service: &dyn Service, chat: Chat, written: &[String], log: &[Value], counts: &mut Counts) {
    let at = format!("{} {chat}", service.name());
    let accepted: Vec<_> = texts_of(log).collect();
    let (mut once, mut all) = (accepted.clone(), written.iter().map(String::as_str).collect::<Vec<_>>());
    if !service.keeps_order() {
        once.sort_unstable();
        all.sort_unstable();
    }
    assert_eq!(once, all, "{at}: each message is accepted once, in the order of the service");
    let shown = service.answers(chat);
    check_permissions(&at, log, &shown);
    let turns = log.iter().filter(|event| event["type"] == "turn_queued").map(|event| &event["turnId"]);
    let ends: Vec<_> = log.iter().filter(|event| event["type"] == "turn_finished").collect();
    assert!(turns.eq(ends.iter().map(|end| &end["turnId"])), "{at}: the turns end in order");
    let (mut after, mut failures) = (0, BTreeMap::<String, usize>::new());
    for (text, end) in accepted.into_iter().zip(ends) {
        if end["state"] != "done" {
            *failures.entry(letters(end["error"].as_str().expect("a text"))).or_default() += 1;
            continue;
        }
        counts.answers += 1;
        let answer = format!("You said: {text}");
        let positions = positions(&shown, |shown| shown.ends_with(&answer));
        let last = positions.last().copied().unwrap_or_else(|| panic!("{at}: {text:?} has no answer in {shown:#?}"));
        assert!(last >= after, "{at}: the answer to {text:?} is before that to an earlier message: {shown:#?}");
        after = last;
        let unmarked = unmarked(&shown, &positions);
        assert!(unmarked <= 1, "{at}: {text:?} has {unmarked} answers without a mark: {shown:#?}");
        counts.doubles += positions.len() - 1;
    }
    for (text, count) in failures {
        let positions = positions(&shown, |shown| letters(shown).ends_with(&text));
        let unmarked = unmarked(&shown, &positions);
        let is_complete = positions.len() >= count && unmarked <= count;
        assert!(is_complete, "{at}: {count} times {text:?}, but {unmarked} without a mark: {shown:#?}");
        counts.failures += count;
        counts.doubles += positions.len() - count;
    }
}

/// Returns the letters of a text: services show Markdown in different ways.
fn letters(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).collect()
}

fn unmarked(shown: &[Shown], positions: &[usize]) -> usize {
    positions.iter().filter(|at| !letters(&shown[**at].text).starts_with(REPEAT)).count()
}

fn positions(shown: &[Shown], is_it: impl Fn(&str) -> bool) -> Vec<usize> {
    shown.iter().enumerate().filter(|(_, shown)| is_it(&shown.text)).map(|(at, _)| at).collect()
}

/// Returns the people who may allow calls.
fn people() -> impl Iterator<Item = u32> {
    (0..CHATS).map(person_of)
}

/// Only the approver allows calls, and no buttons are left.
fn check_permissions(at: &str, log: &[Value], shown: &[Shown]) {
    for event in log.iter().filter(|event| event["type"] == "permission_answered") {
        let is_allowed = event["decision"].as_str().expect("a decision").starts_with("allow");
        let by = event["by"].as_str().unwrap_or_default();
        let is_person = |person: u32| by.ends_with(&format!(":{person}"));
        assert!(!is_allowed || people().any(is_person), "{at}: allowed by another person: {event}");
    }
    let open: Vec<_> = shown.iter().filter(|shown| shown.has_buttons).collect();
    assert!(open.is_empty(), "{at}: requests that stay open: {open:?}");
}
