//! The events for answers to permission requests. The rule that each request has exactly one answer
//! is checked in every stream.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use teamster::event::{AnsweredBy, Event, PermissionAnswered, PermissionDecision, PermissionRequest, RequestId};
use teamster::request::Answer;
use teamster::{AnswerError, Run, RunRequest, Session, SessionOptions};
use teamster_testkit::fake::Script;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::test_env::{CheckedStream, INTERRUPT, LONG, SHORT, TestEnv, bounded, read_until, rest_after, rest_of};

/// A permission request with a suggestion for a permanent rule.
fn asks(id: &str) -> Script {
    let rules = json!([{"toolName": "Bash", "ruleContent": "touch x"}]);
    let suggestion = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings", "rules": rules});
    Script::new().line(json!({
        "type": "control_request", "request_id": id,
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "touch x"}, "tool_use_id": "t1",
            "permission_suggestions": [suggestion]},
    }))
}

/// A turn with these steps.
fn turn(happens: Script) -> Script {
    Script::new().await_line("go").claude_init().then(happens)
}

fn success_end() -> Script {
    Script::new().claude_result("1").read_to_end()
}

fn session_request(env: &TestEnv, script: &Script) -> RunRequest {
    let mut request = env.request(script);
    request.prompt.clear();
    (request.limits.startup, request.limits.silence) = (LONG, LONG);
    request
}

fn open(env: &TestEnv, script: &Script) -> Session {
    env.runtime.open("claude", session_request(env, script)).unwrap()
}

/// Reads the turn up to its permission request, and returns that request.
async fn asked(run: &mut Run) -> (Vec<Event>, PermissionRequest) {
    let events = read_until(run, |event| matches!(event, Event::PermissionRequest(_))).await;
    let Some(Event::PermissionRequest(request)) = events.last().cloned() else { panic!("{events:?}") };
    (events, *request)
}

fn answers(stream: &CheckedStream) -> Vec<&PermissionAnswered> {
    let answers = stream.events.iter().filter_map(|event| match event {
        Event::PermissionAnswered(answered) => Some(&**answered),
        _ => None,
    });
    answers.collect()
}

#[track_caller]
fn is_answered(stream: &CheckedStream, decision: PermissionDecision, by: AnsweredBy) -> PermissionAnswered {
    let [answered] = answers(stream)[..] else { panic!("{:?}", answers(stream)) };
    assert_eq!((answered.decision.clone(), answered.by.clone()), (decision, by), "{answered:?}");
    answered.clone()
}

async fn close(env: &TestEnv, session: Session) {
    bounded("the session's end", session.close()).await;
    env.assert_all_dead();
}

/// The stream of a turn whose request gets this answer. The agent waits for a line that contains
/// `expected`.
async fn answered(answer: Answer, expected: &str) -> CheckedStream {
    let env = TestEnv::new();
    let session = open(&env, &turn(asks("r1").await_line(expected)).then(success_end()));
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    session.answer(request.request_id, answer).await.unwrap();
    let stream = rest_after(events, &mut run).await;
    stream.assert_success("1");
    close(&env, session).await;
    stream
}

#[tokio::test]
async fn an_input_that_the_answer_changes_is_in_the_stream() {
    let input = json!({"command": "ls"});
    let stream = answered(Answer::Allow { input: Some(input) }, r#""updatedInput":{"command":"ls"}"#).await;
    let answered = is_answered(&stream, PermissionDecision::Allow, AnsweredBy::Caller);
    assert_eq!(answered.input.unwrap().as_str(), r#"{"command":"ls"}"#);
    assert_eq!((answered.request, answered.option_id), (None, None));
    let same = Answer::Allow { input: Some(json!({"command": "touch x"})) };
    let stream = self::answered(same, r#""behavior":"allow""#).await;
    assert_eq!(is_answered(&stream, PermissionDecision::Allow, AnsweredBy::Caller).input, None);
}

#[tokio::test]
async fn a_listed_option_can_be_chosen_by_its_id() {
    let option = |id: &str| Answer::Option { option_id: id.to_owned() };
    for (id, expected, decision) in [
        ("allow", r#""behavior":"allow""#, PermissionDecision::Allow),
        ("allow_always", r#""updatedPermissions":[{"#, PermissionDecision::AllowAlways),
        ("deny", r#""behavior":"deny""#, PermissionDecision::Deny),
    ] {
        let stream = answered(option(id), expected).await;
        let answered = is_answered(&stream, decision, AnsweredBy::Caller);
        assert_eq!(answered.option_id.as_deref(), Some(id));
    }
}

#[tokio::test]
async fn an_option_that_is_not_listed_is_an_error_and_the_request_stays_open() {
    let env = TestEnv::new();
    let session = open(&env, &turn(asks("r1").await_line(r#""behavior":"allow""#)).then(success_end()));
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    let option = |id: &str| Answer::Option { option_id: id.to_owned() };
    let error = session.answer(request.request_id.clone(), option("reject\u{1b}_always")).await.unwrap_err();
    assert!(matches!(error, AnswerError::UnknownOption { .. }));
    let text = error.to_string();
    assert!(!text.contains('\u{1b}') && text.ends_with("it lists allow, allow_always, deny"), "{text}");
    session.answer(request.request_id, option("allow")).await.unwrap();
    let stream = rest_after(events, &mut run).await;
    is_answered(&stream, PermissionDecision::Allow, AnsweredBy::Caller);
    close(&env, session).await;
}

/// The stream of a turn whose requests are answered by a handler. The agent waits for a line that
/// contains `expected`.
async fn handled(answer: fn() -> Answer, expected: &str) -> CheckedStream {
    let env = TestEnv::new();
    let request = session_request(&env, &turn(asks("r1").await_line(expected)).then(success_end()));
    let opening = SessionOptions::new(request).with_handler(move |_| async move { answer() });
    let session = env.runtime.open("claude", opening).unwrap();
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    close(&env, session).await;
    stream
}

#[tokio::test]
async fn a_handlers_answer_is_attributed_to_it_and_an_invalid_one_denies() {
    let stream = handled(|| Answer::Allow { input: None }, r#""behavior":"allow""#).await;
    is_answered(&stream, PermissionDecision::Allow, AnsweredBy::Handler);
    let stream = handled(|| panic!("a handler that fails"), r#""behavior":"deny""#).await;
    let answered = is_answered(&stream, PermissionDecision::Deny, AnsweredBy::Handler);
    assert_eq!(answered.message.as_deref(), Some("The handler panicked."));
    let stream = handled(|| Answer::Option { option_id: "x".to_owned() }, r#""behavior":"deny""#).await;
    let answered = is_answered(&stream, PermissionDecision::Deny, AnsweredBy::Handler);
    assert!(answered.message.is_some_and(|message| message.contains("does not list")));
}

#[tokio::test]
async fn an_answer_by_a_rule_contains_its_request() {
    for (allow, deny, expected, decision) in [
        ("Bash(touch:*)", "Bash(rm:*)", r#""behavior":"allow""#, PermissionDecision::Allow),
        ("Bash(rm:*)", "Bash(touch:*)", r#""behavior":"deny""#, PermissionDecision::Deny),
    ] {
        let env = TestEnv::new();
        let mut request = session_request(&env, &turn(asks("r1").await_line(expected)).then(success_end()));
        request.permissions.allow = vec![allow.into()];
        request.permissions.deny = vec![deny.into()];
        let session = env.runtime.open("claude", request).unwrap();
        let stream = rest_of(&mut session.send("go").unwrap()).await;
        let denied = decision == PermissionDecision::Deny;
        let answered = is_answered(&stream, decision, AnsweredBy::Rule);
        let request = answered.request.unwrap();
        assert_eq!((request.tool_name.as_str(), request.deadline), ("Bash", None));
        assert_eq!(request.input, json!({"command": "touch x"}));
        assert_eq!(answered.message.is_some_and(|why| why.contains("Bash(touch:*)")), denied);
        close(&env, session).await;
    }
}

#[tokio::test]
async fn a_request_has_a_deadline_and_is_denied_when_it_passes() {
    let env = TestEnv::new();
    let mut request = session_request(&env, &turn(asks("r1").await_line(r#""behavior":"deny""#)).then(success_end()));
    request.limits.answer = SHORT;
    let session = env.runtime.open("claude", request).unwrap();
    let before = SystemTime::now();
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    let deadline = SystemTime::from(OffsetDateTime::parse(request.deadline.as_deref().unwrap(), &Rfc3339).unwrap());
    let millisecond = Duration::from_millis(1);
    assert!(before + SHORT <= deadline + millisecond && deadline <= SystemTime::now() + SHORT, "{request:?}");
    let stream = rest_after(events, &mut run).await;
    is_answered(&stream, PermissionDecision::Deny, AnsweredBy::Timeout);
    close(&env, session).await;
}

#[tokio::test]
async fn a_request_that_waits_without_limit_has_no_deadline() {
    let env = TestEnv::new();
    let mut request = session_request(&env, &turn(asks("r1").await_line(r#""behavior":"allow""#)).then(success_end()));
    request.limits.answer = Duration::ZERO;
    let session = env.runtime.open("claude", request).unwrap();
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    assert_eq!(request.deadline, None);
    session.answer(request.request_id, Answer::AllowAlways).await.unwrap();
    is_answered(&rest_after(events, &mut run).await, PermissionDecision::AllowAlways, AnsweredBy::Caller);
    close(&env, session).await;
}

#[tokio::test]
async fn a_request_that_the_agent_withdraws_is_cancelled_by_the_agent() {
    let env = TestEnv::new();
    let cancel = json!({"type": "control_cancel_request", "request_id": "r1"});
    let session = open(&env, &turn(asks("r1").line(cancel)).then(success_end()));
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    is_answered(&stream, PermissionDecision::Cancelled, AnsweredBy::Agent);
    close(&env, session).await;
}

#[tokio::test]
async fn a_request_that_is_open_when_its_turn_ends_is_cancelled_by_the_end() {
    let env = TestEnv::new();
    let session = open(&env, &turn(asks("r1")).then(success_end()));
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    stream.assert_success("1");
    is_answered(&stream, PermissionDecision::Cancelled, AnsweredBy::End);
    close(&env, session).await;
}

#[tokio::test]
async fn a_request_that_is_open_when_its_process_exits_is_cancelled_by_the_end() {
    let env = TestEnv::new();
    let session = open(&env, &turn(asks("r1")).exit(3));
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    assert!(stream.result().is_error);
    is_answered(&stream, PermissionDecision::Cancelled, AnsweredBy::End);
    close(&env, session).await;
}

#[tokio::test]
async fn a_request_that_is_open_when_its_turn_is_stopped_is_cancelled_by_the_end() {
    let stopped = json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming",
    });
    for aborts in [false, true] {
        let env = TestEnv::new();
        let session = open(&env, &turn(asks("r1")).await_line(INTERRUPT).line(stopped.clone()).read_to_end());
        let mut run = session.send("go").unwrap();
        let (events, _) = asked(&mut run).await;
        if aborts {
            run.control().abort();
        } else {
            run.control().interrupt();
        }
        let stream = rest_after(events, &mut run).await;
        stream.assert_aborted();
        is_answered(&stream, PermissionDecision::Cancelled, AnsweredBy::End);
        close(&env, session).await;
    }
}

#[tokio::test]
async fn a_denial_between_turns_is_reported_in_the_next_turn() {
    let env = TestEnv::new();
    let first = turn(Script::new()).claude_result("1");
    let between = asks("r1").await_line(r#""behavior":"deny""#).write_pid(&env.pid_file(), "denied");
    let session = open(&env, &first.then(between).then(turn(Script::new())).then(success_end()));
    assert!(answers(&rest_of(&mut session.send("go").unwrap()).await).is_empty());
    env.pid("denied").await;
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    let answered = is_answered(&stream, PermissionDecision::Deny, AnsweredBy::Unattended);
    assert_eq!(answered.request.unwrap().request_id, RequestId::from("r1"));
    close(&env, session).await;
}

/// The stream of a turn of an ACP agent that offers its own permission options. The agent waits for
/// a line that contains `expected`.
async fn by_acp(answer: Answer, expected: &str) -> CheckedStream {
    let env = TestEnv::new();
    let result = |id: u64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let option = |kind: &str| json!({"optionId": format!("my-{kind}"), "name": "N", "kind": kind});
    let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": {
        "sessionId": "s",
        "toolCall": {"toolCallId": "t1", "title": "touch x", "kind": "execute", "rawInput": {"command": "touch x"}},
        "options": [option("allow_once"), option("reject_once"), option("reject_always"), option("made_up")],
    }});
    let script = Script::new()
        .await_line("initialize")
        .line(result(1, json!({"protocolVersion": 1})))
        .await_line("session/new")
        .line(result(2, json!({"sessionId": "s"})))
        .await_line("session/prompt")
        .line(ask)
        .await_line(expected)
        .line(result(3, json!({"stopReason": "end_turn"})))
        .read_to_end();
    let session = env.runtime.open("acp", session_request(&env, &script)).unwrap();
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    assert_eq!(request.options.len(), 4);
    session.answer(request.request_id, answer).await.unwrap();
    let stream = rest_after(events, &mut run).await;
    assert!(!stream.result().is_error, "{:?}", stream.events);
    close(&env, session).await;
    stream
}

#[tokio::test]
async fn an_option_of_the_agent_is_chosen_by_its_id_for_any_kind() {
    for (kind, decision) in [
        ("allow_once", PermissionDecision::Allow),
        ("reject_always", PermissionDecision::DenyAlways),
        ("made_up", PermissionDecision::Other("made_up".to_owned())),
    ] {
        let option_id = format!("my-{kind}");
        let expected = format!(r#""optionId":"{option_id}""#);
        let stream = by_acp(Answer::Option { option_id: option_id.clone() }, &expected).await;
        let answered = is_answered(&stream, decision, AnsweredBy::Caller);
        assert_eq!(answered.option_id.as_deref(), Some(&*option_id));
    }
}

#[tokio::test]
async fn an_answer_that_the_agent_does_not_support_is_reported_as_the_denial_it_becomes() {
    let stream =
        by_acp(Answer::Allow { input: Some(json!({"command": "ls"})) }, r#""optionId":"my-reject_once""#).await;
    let answered = is_answered(&stream, PermissionDecision::Deny, AnsweredBy::Caller);
    assert_eq!((answered.input, answered.option_id.as_deref()), (None, Some("my-reject_once")));
    assert!(answered.message.is_some_and(|why| why.contains("changing the arguments")));
}
