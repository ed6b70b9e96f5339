//! Waits for a quiet moment of the agent: after a response, after a session was loaded, and between turns.

use std::time::Duration;

use serde_json::{Value, json};
use teamster_agents::agent::acp::Acp;
use teamster_agents::agent::{Agent, gemini::Gemini};
use teamster_agents::protocol::{Action, Command, ExitReport, Input, ProcessAction};
use teamster_types::event::{ErrorCode, Event};
use teamster_types::request::{Conversation, PermissionMode};

use super::{TestSession, session_request};

const END: Value = Value::Null;

fn end_turn() -> Value {
    json!({"stopReason": "end_turn"})
}

fn has_prompt(session: &TestSession) -> bool {
    session.methods().last() == Some(&"session/prompt")
}

#[test]
fn text_after_the_response_is_part_of_the_turn() {
    for agent in [&Acp::any() as &dyn Agent, &Gemini] {
        let mut session = TestSession::of(agent, &session_request());
        session.initialize(&json!({}));
        session.answer(&json!({"sessionId": "s"}));
        session.send("Go.");
        session.chunk("first half, ");
        session.respond(&end_turn());
        assert!(session.outcomes.is_empty() && session.timer <= Some(Duration::from_millis(100)));
        session.timer = None;
        session.chunk("second half.");
        assert!(session.timer.is_some(), "each chunk starts the wait again");
        session.quiet();
        assert_eq!((session.text().as_str(), session.outcomes.len()), ("first half, second half.", 1));
        assert!(session.warnings().is_empty());
    }
}

#[test]
fn text_after_the_response_is_the_answer_of_a_turn_without_other_text() {
    let mut session = TestSession::open(&session_request(), &json!({}));
    session.send("Go.");
    session.respond(&end_turn());
    session.chunk("late");
    session.quiet();
    assert_eq!(session.outcomes[0].failure, None);
}

#[test]
fn an_exit_or_an_interrupt_after_the_response_ends_the_turn_with_its_result() {
    for input in [Input::Interrupt, Input::Exited(ExitReport { code: Some(1), ..ExitReport::default() })] {
        let mut session = TestSession::open(&session_request(), &json!({}));
        session.send("Go.");
        session.chunk("all");
        session.respond(&end_turn());
        session.handle(input);
        assert!(session.outcomes[0].failure.is_none() && !session.outcomes[0].interrupted, "{input:?}");
    }
}

#[test]
fn in_a_run_all_text_until_the_exit_is_part_of_the_answer() {
    let mut request = session_request();
    request.prompt = "Go.".to_owned();
    let mut protocol = Acp::any().plan(&request).unwrap().protocol;
    let (mut actions, mut number) = (Vec::new(), 0);
    protocol.handle(Input::Started, &mut actions);
    for result in [json!({"protocolVersion": 1}), json!({"sessionId": "s"}), end_turn()] {
        number += 1;
        let line = json!({"jsonrpc": "2.0", "id": number, "result": result}).to_string();
        protocol.handle(Input::Line(line.as_bytes()), &mut actions);
    }
    let chunk = |text: &str| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
        .to_string()
    };
    protocol.handle(Input::Line(chunk("one, ").as_bytes()), &mut actions);
    let closes = |actions: &[Action]| actions.contains(&Action::Process(ProcessAction::CloseStdin));
    assert!(!closes(&actions), "an agent may drop what it has not written when its input ends");
    protocol.handle(Input::TimerElapsed, &mut actions);
    assert!(closes(&actions));
    actions.clear();
    protocol.handle(Input::Line(chunk("two").as_bytes()), &mut actions);
    assert!(matches!(&actions[0], Action::Emit(Event::Text(delta)) if delta.text.as_str() == "two"), "{actions:?}");
    assert!(matches!(actions.last(), Some(Action::Outcome(outcome)) if outcome.failure.is_none()), "{actions:?}");
}

fn loaded() -> TestSession {
    let mut request = session_request();
    request.conversation = Conversation::Resume("s".into());
    let mut session = TestSession::new(&request);
    session.initialize(&json!({"loadSession": true}));
    session.respond(&END);
    session
}

fn user_chunk(session: &mut TestSession, text: &str) {
    session.update(&json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}}));
}

#[test]
fn the_first_prompt_after_a_load_waits_until_the_replay_has_ended() {
    let mut session = loaded();
    session.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &"Go.".into() }));
    assert!(!has_prompt(&session));
    session.timer = None;
    user_chunk(&mut session, "OLD QUESTION");
    session.chunk("OLD ANSWER");
    assert!(!has_prompt(&session) && session.timer.is_some(), "each update starts the wait again");
    session.quiet();
    assert!(has_prompt(&session));
    session.chunk("new");
    session.answer(&end_turn());
    assert_eq!(session.text(), "new");
    assert!(session.warnings().is_empty(), "a replay is no late text: {:?}", session.warnings());
}

#[test]
fn a_part_of_the_conversation_that_is_replayed_after_the_prompt_is_skipped() {
    let mut session = loaded();
    session.quiet();
    session.send("Go now.");
    user_chunk(&mut session, "OLD QUESTION");
    session.chunk("OLD ANSWER");
    session.quiet();
    session.chunk("new");
    session.answer(&end_turn());
    assert_eq!(session.text(), "new");
    assert_eq!(session.warnings().len(), 1, "{:?}", session.warnings());
    // Some agents report the prompt itself.
    let mut session = loaded();
    session.quiet();
    session.send("Go now.");
    user_chunk(&mut session, "OLD QUESTION");
    session.chunk("OLD ANSWER");
    user_chunk(&mut session, "Go now.");
    session.chunk("new");
    session.answer(&end_turn());
    assert_eq!(session.text(), "new");
    // In a turn of a new session, and in a later turn, nothing is replayed.
    let mut session = TestSession::open(&session_request(), &json!({}));
    session.send("Go.");
    user_chunk(&mut session, "something");
    session.chunk("new");
    session.answer(&end_turn());
    assert_eq!(session.text(), "new");
}

#[test]
fn text_between_turns_is_reported_and_is_no_part_of_the_next_answer() {
    let mut session = TestSession::open(&session_request(), &json!({}));
    let send = |session: &mut TestSession| {
        session.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &"Go.".into() }));
    };
    session.send("Go.");
    session.chunk("1");
    session.respond(&end_turn());
    session.timer = None;
    session.handle(Input::TimerElapsed);
    assert_eq!(session.outcomes.len(), 1);
    send(&mut session);
    assert!(
        !has_prompt(&session) || session.methods().iter().filter(|method| **method == "session/prompt").count() == 1
    );
    session.chunk(" LATE");
    session.update(&json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "do it", "status": "pending"}));
    session.quiet();
    session.chunk("2");
    session.answer(&end_turn());
    assert_eq!(session.text(), "12");
    assert!(session.warnings()[0].ends_with("part of no answer:  LATE[call: do it]"), "{:?}", session.warnings());
    // The agent writes after its turns, so later prompts wait too. An idle agent's text is reported before the next prompt.
    session.chunk("3");
    session.handle(Input::Command(Command::Close));
    assert_eq!(session.warnings().len(), 2);
}

#[test]
fn an_agent_that_is_quiet_after_its_first_turn_gets_later_prompts_at_once() {
    let mut session = TestSession::open(&session_request(), &json!({}));
    for turn in 0..3 {
        session.handle(Input::Command(Command::Send { id: &"w1".into(), prompt: &"Go.".into() }));
        if turn == 1 {
            session.quiet();
        }
        assert!(has_prompt(&session), "{turn}");
        session.chunk("answer");
        session.respond(&end_turn());
        session.timer = None;
        session.handle(Input::TimerElapsed);
        assert_eq!(session.timer.is_some(), turn == 0);
    }
}

#[test]
fn a_turn_without_an_answer_is_a_failure() {
    let tool = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "do it", "kind": "read", "status": "completed"});
    let thought = json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}});
    for (prompt, update, fails) in
        [("Go.", None, true), ("Go.", Some(&thought), true), ("Go.", Some(&tool), false), ("/compact", None, false)]
    {
        let mut request = session_request();
        request.permissions.mode = PermissionMode::Full;
        let mut session = TestSession::open(&request, &json!({}));
        session.send(prompt);
        if let Some(update) = update {
            session.update(update);
        }
        session.answer(&end_turn());
        let code = session.outcomes[0].failure.as_ref().map(|failure| failure.code.clone());
        assert_eq!(code, fails.then_some(ErrorCode::Provider), "{prompt} {update:?}");
    }
}
