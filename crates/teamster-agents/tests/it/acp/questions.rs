//! Questions of the agent.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use teamster_agents::protocol::{Command, Input};
use teamster_types::event::Event;
use teamster_types::request::Answer;

use super::{TestSession, session_request};

fn ask(session: &mut TestSession, mode: &str) {
    session.line(&json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {
        "sessionId": "s", "mode": mode, "message": "Which one?", "elicitationId": "e", "url": "https://example.org",
        "requestedSchema": {"type": "object", "required": ["choice"], "properties": {"choice": {
            "type": "string", "title": "Workspace", "oneOf": [
                {"const": "a", "title": "Current checkout"}, {"const": "b", "title": "New worktree"}]}}},
    }}));
}

fn asked(mode: &str) -> TestSession {
    let mut session = TestSession::open(&session_request(), &json!({}));
    session.send("Go.");
    ask(&mut session, mode);
    session
}

fn response(session: &TestSession) -> Value {
    assert_eq!(session.responses(7).len(), 1);
    session.responses(7)[0]["result"].clone()
}

#[test]
fn a_form_is_a_question_and_the_answer_is_its_content() {
    let choose = |label: &str| Answer::Choose(BTreeMap::from([("choice".to_owned(), vec![label.to_owned()])]));
    for (answer, expected) in [
        (choose("New worktree"), json!({"action": "accept", "content": {"choice": "b"}})),
        (choose("Another one"), json!({"action": "decline"})),
        (Answer::Deny { message: None }, json!({"action": "decline"})),
    ] {
        let mut session = asked("form");
        let question = session.events.iter().find_map(|event| match event {
            Event::Question(question) => Some(question.clone()),
            _ => None,
        });
        let question = question.unwrap();
        assert_eq!(question.questions[0].text.as_str(), "Which one?\nWorkspace");
        assert!(session.responses(7).is_empty());
        session.handle(Input::Command(Command::Answer { request: &question.request_id, answer: &answer }));
        assert_eq!(response(&session), expected, "{answer:?}");
    }
}

#[test]
fn a_question_that_no_caller_can_answer_is_declined_or_cancelled() {
    let session = asked("url");
    assert_eq!(response(&session), json!({"action": "decline"}));
    assert_eq!(session.warnings().len(), 1);
    let mut between_turns = TestSession::open(&session_request(), &json!({}));
    ask(&mut between_turns, "form");
    assert_eq!(response(&between_turns), json!({"action": "decline"}));
    let mut interrupted = asked("form");
    let id = interrupted.requests()[0].clone();
    interrupted.handle(Input::Interrupt);
    assert_eq!(response(&interrupted), json!({"action": "cancel"}));
    assert_eq!(interrupted.withdrawn, [id]);
    let mut withdrawn = asked("form");
    withdrawn.line(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 7}}));
    assert_eq!(withdrawn.withdrawn.len(), 1);
}
