//! Rules of the request that answer permission requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use teamster::event::{Event, PermissionRequest};
use teamster::request::{Answer, PermissionMode};
use teamster::{Run, RunError, RunRequest, SessionOptions};
use teamster_testkit::fake::Script;

use crate::test_env::{CheckedStream, LONG, TestEnv, bounded, read_until, rest_after, rest_of};

/// Requests permission to run this command, and waits for an answer that contains `expected`.
fn asks(id: &str, command: &str, expected: &str) -> Script {
    calls(id, "Bash", &json!({ "command": command }), expected)
}

/// Requests permission for any tool.
fn calls(id: &str, tool: &str, input: &Value, expected: &str) -> Script {
    Script::new()
        .line(json!({
            "type": "control_request", "request_id": id,
            "request": {"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": id},
        }))
        .await_line(expected)
}

/// Plays a turn with these permission requests. Returns its stream and the number of calls of a
/// handler, which denies.
async fn play_turn(asking: Script, change: impl FnOnce(&mut RunRequest)) -> (CheckedStream, usize) {
    let env = TestEnv::new();
    let script = Script::new().await_line("go").claude_init().then(asking).claude_result("1").read_to_end();
    let mut request = env.request(&script);
    request.prompt.clear();
    (request.limits.startup, request.limits.silence) = (LONG, LONG);
    request.permissions.allow = vec!["Bash(git diff:*)".into(), "Bash(git push:*)".into()];
    request.permissions.deny = vec!["Bash(git push:*)".into()];
    change(&mut request);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let opening = SessionOptions::new(request).with_handler(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Answer::Deny { message: Some("No.".to_owned()) } }
    });
    let session = env.runtime.open("claude", opening).unwrap();
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    bounded("the session's end", session.close()).await;
    env.assert_all_dead();
    (stream, calls.load(Ordering::Relaxed))
}

fn requests(stream: &CheckedStream) -> usize {
    stream.events.iter().filter(|event| matches!(event, Event::PermissionRequest(_))).count()
}

#[tokio::test]
async fn a_request_that_a_rule_answers_reaches_no_handler() {
    let asking = asks("r1", "git diff HEAD", r#""behavior":"allow""#).then(asks(
        "r2",
        "git push",
        "It is denied by the rule Bash(git push:*).",
    ));
    let (stream, calls) = play_turn(asking, |_| {}).await;
    stream.assert_success("1");
    assert_eq!((requests(&stream), calls), (0, 0));
}

#[tokio::test]
async fn a_request_without_a_certain_rule_reaches_the_handler() {
    let (stream, calls) = play_turn(asks("r1", "git diff; touch x", r#""message":"No.""#), |_| {}).await;
    stream.assert_success("1");
    assert_eq!((requests(&stream), calls), (1, 1));
}

#[tokio::test]
async fn simultaneous_requests_are_answered_by_their_rules() {
    let lines = (0..20).fold(Script::new(), |lines, number| {
        let (command, answer) = if number % 2 == 0 { ("git diff", "allow") } else { ("git push", "deny") };
        let id = format!("r{number}");
        lines.then(asks(&id, command, &format!(r#""response":{{"behavior":"{answer}""#)))
    });
    let (stream, calls) = play_turn(lines, |_| {}).await;
    stream.assert_success("1");
    assert_eq!((requests(&stream), calls), (0, 0));
}

#[tokio::test]
async fn a_request_that_a_deny_rule_may_cover_reaches_the_handler_even_in_full_mode() {
    let (stream, calls) = play_turn(asks("r1", "a=x; $a push", r#""message":"No.""#), |request| {
        request.permissions.mode = PermissionMode::Full;
        request.permissions.allow = vec!["Bash".into()];
    })
    .await;
    stream.assert_success("1");
    assert_eq!((requests(&stream), calls), (1, 1));
}

#[tokio::test]
async fn a_path_is_resolved_when_its_rule_is_evaluated() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("src")).unwrap();
    std::fs::create_dir_all(dir.path().join("secrets")).unwrap();
    std::os::unix::fs::symlink("/etc", dir.path().join("src/link")).unwrap();
    std::os::unix::fs::symlink("../secrets", dir.path().join("src/alias")).unwrap();
    let write = |id, path: &str, expected| calls(id, "Write", &json!({"file_path": path, "content": "x"}), expected);
    let asking = write("r1", "src/new/file", r#""behavior":"allow""#)
        .then(write("r2", "src/link/passwd", r#""message":"No.""#))
        .then(write("r3", "src/alias/key", "It is denied by the rule Write(secrets/**)."))
        .then(write("r4", "./src/../secrets/key", "It is denied by the rule Write(secrets/**)."));
    let (stream, calls) = play_turn(asking, |request| {
        request.cwd = Some(dir.path().to_owned());
        request.permissions.allow = vec!["Write(src/**)".into()];
        request.permissions.deny = vec!["Write(secrets/**)".into()];
    })
    .await;
    stream.assert_success("1");
    assert_eq!((requests(&stream), calls), (1, 1));
}

#[tokio::test]
async fn in_read_only_mode_no_rule_allows_anything() {
    let asking = asks("r1", "git diff", r#""message":"No.""#);
    let (stream, calls) = play_turn(asking, |request| request.permissions.mode = PermissionMode::ReadOnly).await;
    stream.assert_success("1");
    assert_eq!((requests(&stream), calls), (1, 1));
}

#[tokio::test]
async fn a_session_with_an_invalid_rule_is_rejected() {
    let env = TestEnv::new();
    let mut request = env.request(&Script::new());
    request.prompt.clear();
    request.permissions.deny = vec!["Bash(rm".into()];
    let Err(RunError::Request(error)) = env.runtime.open("claude", request) else { panic!("it was opened") };
    assert!(
        error.to_string().starts_with(r#""Bash(rm" is not a valid tool rule: the closing bracket is missing"#),
        "{error}"
    );
}

#[tokio::test]
async fn a_rule_that_is_added_answers_later_requests_until_it_is_revoked() {
    let env = TestEnv::new();
    let allows = |id: &str, command: &str| asks(id, command, r#""behavior":"allow""#);
    let script = Script::new()
        .await_line("one")
        .claude_init()
        .then(allows("r1", "npm install a"))
        .then(allows("r2", "npm install b"))
        .claude_result("1")
        .await_line("two")
        .then(asks("r3", "npm install c", r#""behavior":"deny""#))
        .claude_result("2")
        .read_to_end();
    let mut request = env.request(&script);
    request.prompt.clear();
    (request.limits.startup, request.limits.silence) = (LONG, LONG);
    let session = env.runtime.open("claude", request).unwrap();

    let mut run = session.send("one").unwrap();
    let (events, asked) = permission_request(&mut run).await;
    let rules = session.suggest_rules(&asked).unwrap();
    let [rule] = &rules[..] else { panic!("{rules:?}") };
    assert_eq!(rule, "Bash(npm install:*)");
    session.allow_rule(rule.as_str()).unwrap();
    assert!(session.allow_rule("Bash(").is_err());
    assert_eq!(session.allowed_rules(), [rule.as_str()]);
    session.answer(asked.request_id, Answer::Allow { input: None }).await.unwrap();
    let stream = rest_after(events, &mut run).await;
    stream.assert_success("1");
    assert_eq!(requests(&stream), 1, "the rule answers the second request");

    assert!(session.revoke_rule(rule).unwrap() && !session.revoke_rule(rule).unwrap());
    assert!(session.allowed_rules().is_empty());
    let mut run = session.send("two").unwrap();
    let (events, asked) = permission_request(&mut run).await;
    session.answer(asked.request_id, Answer::Deny { message: None }).await.unwrap();
    rest_after(events, &mut run).await.assert_success("2");
    bounded("the session's end", session.close()).await;
    env.assert_all_dead();
}

/// Waits for the next permission request of a turn. Returns the events up to it, too.
async fn permission_request(run: &mut Run) -> (Vec<Event>, PermissionRequest) {
    let events = read_until(run, |event| matches!(event, Event::PermissionRequest(_))).await;
    let Some(Event::PermissionRequest(request)) = events.last().cloned() else { panic!("{events:?}") };
    (events, *request)
}
