//! What the stream says of the answers to permission requests. That each request has exactly one is checked in every stream.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use teamster::event::{AnsweredBy, Event, PermissionAnswered, PermissionDecision, PermissionRequest, RequestId};
use teamster::request::Answer;
use teamster::{AnswerError, Opening, Run, RunRequest, Session};
use teamster_testkit::fake::Script;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::lab::{INTERRUPT, LONG, Lab, SHORT, Told, bounded, read_until, rest_after, rest_of};

/// A request for permission, with a suggestion by which the CLI would ask no more.
fn asks(id: &str) -> Script {
    let rules = json!([{"toolName": "Bash", "ruleContent": "touch x"}]);
    let suggestion = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings", "rules": rules});
    Script::new().line(json!({
        "type": "control_request", "request_id": id,
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "touch x"}, "tool_use_id": "t1",
            "permission_suggestions": [suggestion]},
    }))
}

/// A turn in which this happens.
fn turn(happens: Script) -> Script {
    Script::new().await_line("go").claude_init().then(happens)
}

fn good_end() -> Script {
    Script::new().claude_result("1").read_to_end()
}

fn frame(lab: &Lab, script: &Script) -> RunRequest {
    let mut frame = lab.request(script);
    frame.prompt.clear();
    (frame.limits.startup, frame.limits.silence) = (LONG, LONG);
    frame
}

fn open(lab: &Lab, script: &Script) -> Session {
    lab.runtime.open("claude", frame(lab, script)).unwrap()
}

/// The turn until it asks, and what it asks.
async fn asked(run: &mut Run) -> (Vec<Event>, PermissionRequest) {
    let events = read_until(run, |event| matches!(event, Event::PermissionRequest(_))).await;
    let Some(Event::PermissionRequest(request)) = events.last().cloned() else { panic!("{events:?}") };
    (events, *request)
}

fn answers(told: &Told) -> Vec<&PermissionAnswered> {
    let answers = told.events.iter().filter_map(|event| match event {
        Event::PermissionAnswered(answered) => Some(&**answered),
        _ => None,
    });
    answers.collect()
}

#[track_caller]
fn is_answered(told: &Told, decision: PermissionDecision, by: AnsweredBy) -> PermissionAnswered {
    let [answered] = answers(told)[..] else { panic!("{:?}", answers(told)) };
    assert_eq!((answered.decision.clone(), answered.by.clone()), (decision, by), "{answered:?}");
    answered.clone()
}

async fn close(lab: &Lab, session: Session) {
    bounded("the session's end", session.close()).await;
    lab.assert_all_dead();
}

/// What is told of a turn in which a request is answered like this, and the agent hears that.
async fn answered(answer: Answer, hears: &str) -> Told {
    let lab = Lab::new();
    let session = open(&lab, &turn(asks("r1").await_line(hears)).then(good_end()));
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    session.answer(request.request_id, answer).await.unwrap();
    let told = rest_after(events, &mut run).await;
    told.is_good("1");
    close(&lab, session).await;
    told
}

#[tokio::test]
async fn an_allowed_input_that_was_changed_is_in_the_stream() {
    let input = json!({"command": "ls"});
    let told = answered(Answer::Allow { input: Some(input) }, r#""updatedInput":{"command":"ls"}"#).await;
    let answered = is_answered(&told, PermissionDecision::Allow, AnsweredBy::Caller);
    assert_eq!(answered.input.unwrap().as_str(), r#"{"command":"ls"}"#);
    assert_eq!((answered.request, answered.option_id), (None, None));
    let same = Answer::Allow { input: Some(json!({"command": "touch x"})) };
    let told = self::answered(same, r#""behavior":"allow""#).await;
    assert_eq!(is_answered(&told, PermissionDecision::Allow, AnsweredBy::Caller).input, None);
}

#[tokio::test]
async fn a_listed_option_is_an_answer_by_its_id() {
    let option = |id: &str| Answer::Option { option_id: id.to_owned() };
    for (id, hears, decision) in [
        ("allow", r#""behavior":"allow""#, PermissionDecision::Allow),
        ("allow_always", r#""updatedPermissions":[{"#, PermissionDecision::AllowAlways),
        ("deny", r#""behavior":"deny""#, PermissionDecision::Deny),
    ] {
        let told = answered(option(id), hears).await;
        let answered = is_answered(&told, decision, AnsweredBy::Caller);
        assert_eq!(answered.option_id.as_deref(), Some(id));
    }
}

#[tokio::test]
async fn an_option_that_is_not_listed_is_an_error_and_the_request_waits_still() {
    let lab = Lab::new();
    let session = open(&lab, &turn(asks("r1").await_line(r#""behavior":"allow""#)).then(good_end()));
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    let option = |id: &str| Answer::Option { option_id: id.to_owned() };
    let error = session.answer(request.request_id.clone(), option("reject\u{1b}_always")).await.unwrap_err();
    assert!(matches!(error, AnswerError::UnknownOption { .. }));
    let text = error.to_string();
    assert!(!text.contains('\u{1b}') && text.ends_with("it lists allow, allow_always, deny"), "{text}");
    session.answer(request.request_id, option("allow")).await.unwrap();
    let told = rest_after(events, &mut run).await;
    is_answered(&told, PermissionDecision::Allow, AnsweredBy::Caller);
    close(&lab, session).await;
}

/// What is told of a turn whose requests a handler answers like this.
async fn handled(answer: fn() -> Answer, hears: &str) -> Told {
    let lab = Lab::new();
    let frame = frame(&lab, &turn(asks("r1").await_line(hears)).then(good_end()));
    let opening = Opening::new(frame).answered_by(move |_| async move { answer() });
    let session = lab.runtime.open("claude", opening).unwrap();
    let told = rest_of(&mut session.send("go").unwrap()).await;
    close(&lab, session).await;
    told
}

#[tokio::test]
async fn a_handlers_answer_is_its_own_and_one_that_is_none_denies() {
    let told = handled(|| Answer::Allow { input: None }, r#""behavior":"allow""#).await;
    is_answered(&told, PermissionDecision::Allow, AnsweredBy::Handler);
    let told = handled(|| panic!("a handler that fails"), r#""behavior":"deny""#).await;
    let answered = is_answered(&told, PermissionDecision::Deny, AnsweredBy::Handler);
    assert_eq!(answered.message.as_deref(), Some("The handler panicked."));
    let told = handled(|| Answer::Option { option_id: "x".to_owned() }, r#""behavior":"deny""#).await;
    let answered = is_answered(&told, PermissionDecision::Deny, AnsweredBy::Handler);
    assert!(answered.message.is_some_and(|message| message.contains("does not list")));
}

#[tokio::test]
async fn what_a_rule_answers_is_told_with_the_request_that_nobody_was_asked() {
    for (allow, deny, hears, decision) in [
        ("Bash(touch:*)", "Bash(rm:*)", r#""behavior":"allow""#, PermissionDecision::Allow),
        ("Bash(rm:*)", "Bash(touch:*)", r#""behavior":"deny""#, PermissionDecision::Deny),
    ] {
        let lab = Lab::new();
        let mut frame = frame(&lab, &turn(asks("r1").await_line(hears)).then(good_end()));
        frame.permissions.allow = vec![allow.into()];
        frame.permissions.deny = vec![deny.into()];
        let session = lab.runtime.open("claude", frame).unwrap();
        let told = rest_of(&mut session.send("go").unwrap()).await;
        let denied = decision == PermissionDecision::Deny;
        let answered = is_answered(&told, decision, AnsweredBy::Rule);
        let request = answered.request.unwrap();
        assert_eq!((request.tool_name.as_str(), request.deadline), ("Bash", None));
        assert_eq!(request.input, json!({"command": "touch x"}));
        assert_eq!(answered.message.is_some_and(|why| why.contains("Bash(touch:*)")), denied);
        close(&lab, session).await;
    }
}

#[tokio::test]
async fn a_request_says_until_when_it_waits_and_what_nobody_answers_is_denied_by_the_time() {
    let lab = Lab::new();
    let mut frame = frame(&lab, &turn(asks("r1").await_line(r#""behavior":"deny""#)).then(good_end()));
    frame.limits.answer = SHORT;
    let session = lab.runtime.open("claude", frame).unwrap();
    let before = SystemTime::now();
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    let deadline = SystemTime::from(OffsetDateTime::parse(request.deadline.as_deref().unwrap(), &Rfc3339).unwrap());
    let millisecond = Duration::from_millis(1);
    assert!(before + SHORT <= deadline + millisecond && deadline <= SystemTime::now() + SHORT, "{request:?}");
    let told = rest_after(events, &mut run).await;
    is_answered(&told, PermissionDecision::Deny, AnsweredBy::Timeout);
    close(&lab, session).await;
}

#[tokio::test]
async fn a_request_that_waits_without_limit_has_no_deadline() {
    let lab = Lab::new();
    let mut frame = frame(&lab, &turn(asks("r1").await_line(r#""behavior":"allow""#)).then(good_end()));
    frame.limits.answer = Duration::ZERO;
    let session = lab.runtime.open("claude", frame).unwrap();
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    assert_eq!(request.deadline, None);
    session.answer(request.request_id, Answer::AllowAlways).await.unwrap();
    is_answered(&rest_after(events, &mut run).await, PermissionDecision::AllowAlways, AnsweredBy::Caller);
    close(&lab, session).await;
}

#[tokio::test]
async fn a_request_that_the_agent_withdraws_is_cancelled_by_the_agent() {
    let lab = Lab::new();
    let cancel = json!({"type": "control_cancel_request", "request_id": "r1"});
    let session = open(&lab, &turn(asks("r1").line(cancel)).then(good_end()));
    let told = rest_of(&mut session.send("go").unwrap()).await;
    is_answered(&told, PermissionDecision::Cancelled, AnsweredBy::Agent);
    close(&lab, session).await;
}

#[tokio::test]
async fn a_request_that_waits_when_its_turn_ends_is_answered_by_the_end() {
    let lab = Lab::new();
    let session = open(&lab, &turn(asks("r1")).then(good_end()));
    let told = rest_of(&mut session.send("go").unwrap()).await;
    told.is_good("1");
    is_answered(&told, PermissionDecision::Cancelled, AnsweredBy::End);
    close(&lab, session).await;
}

#[tokio::test]
async fn a_request_that_waits_when_its_process_ends_is_answered_by_the_end() {
    let lab = Lab::new();
    let session = open(&lab, &turn(asks("r1")).exit(3));
    let told = rest_of(&mut session.send("go").unwrap()).await;
    assert!(told.result().is_error);
    is_answered(&told, PermissionDecision::Cancelled, AnsweredBy::End);
    close(&lab, session).await;
}

#[tokio::test]
async fn a_request_that_waits_when_its_turn_is_stopped_is_answered_by_the_end() {
    let stopped = json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming",
    });
    for aborts in [false, true] {
        let lab = Lab::new();
        let session = open(&lab, &turn(asks("r1")).await_line(INTERRUPT).line(stopped.clone()).read_to_end());
        let mut run = session.send("go").unwrap();
        let (events, _) = asked(&mut run).await;
        if aborts {
            run.control().abort();
        } else {
            run.control().interrupt();
        }
        let told = rest_after(events, &mut run).await;
        told.is_aborted();
        is_answered(&told, PermissionDecision::Cancelled, AnsweredBy::End);
        close(&lab, session).await;
    }
}

#[tokio::test]
async fn what_is_denied_between_turns_is_told_in_the_next_one() {
    let lab = Lab::new();
    let first = turn(Script::new()).claude_result("1");
    let between = asks("r1").await_line(r#""behavior":"deny""#).write_pid(&lab.pid_file(), "denied");
    let session = open(&lab, &first.then(between).then(turn(Script::new())).then(good_end()));
    assert!(answers(&rest_of(&mut session.send("go").unwrap()).await).is_empty());
    lab.pid("denied").await;
    let told = rest_of(&mut session.send("go").unwrap()).await;
    let answered = is_answered(&told, PermissionDecision::Deny, AnsweredBy::Unattended);
    assert_eq!(answered.request.unwrap().request_id, RequestId::from("r1"));
    close(&lab, session).await;
}

/// What is told of a turn of an agent that speaks ACP, which asks with options of its own and hears that.
async fn by_acp(answer: Answer, hears: &str) -> Told {
    let lab = Lab::new();
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
        .await_line(hears)
        .line(result(3, json!({"stopReason": "end_turn"})))
        .read_to_end();
    let session = lab.runtime.open("acp", frame(&lab, &script)).unwrap();
    let mut run = session.send("go").unwrap();
    let (events, request) = asked(&mut run).await;
    assert_eq!(request.options.len(), 4);
    session.answer(request.request_id, answer).await.unwrap();
    let told = rest_after(events, &mut run).await;
    assert!(!told.result().is_error, "{:?}", told.events);
    close(&lab, session).await;
    told
}

#[tokio::test]
async fn an_agents_own_option_is_chosen_by_its_id_whatever_its_kind() {
    for (kind, decision) in [
        ("allow_once", PermissionDecision::Allow),
        ("reject_always", PermissionDecision::DenyAlways),
        ("made_up", PermissionDecision::Other("made_up".to_owned())),
    ] {
        let option_id = format!("my-{kind}");
        let hears = format!(r#""optionId":"{option_id}""#);
        let told = by_acp(Answer::Option { option_id: option_id.clone() }, &hears).await;
        let answered = is_answered(&told, decision, AnsweredBy::Caller);
        assert_eq!(answered.option_id.as_deref(), Some(&*option_id));
    }
}

#[tokio::test]
async fn an_answer_that_the_agent_cannot_take_is_told_as_the_denial_that_it_gets() {
    let told = by_acp(Answer::Allow { input: Some(json!({"command": "ls"})) }, r#""optionId":"my-reject_once""#).await;
    let answered = is_answered(&told, PermissionDecision::Deny, AnsweredBy::Caller);
    assert_eq!((answered.input, answered.option_id.as_deref()), (None, Some("my-reject_once")));
    assert!(answered.message.is_some_and(|why| why.contains("other arguments")));
}
