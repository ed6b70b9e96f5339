//! Rules of the request, as an answer to what an agent asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use teamster::event::Event;
use teamster::request::{Answer, PermissionMode};
use teamster::{Opening, RunError, RunRequest};
use teamster_testkit::fake::Script;

use crate::lab::{LONG, Lab, Told, bounded, rest_of};

/// Asks for leave to run this, and goes on when it hears such an answer.
fn asks(id: &str, command: &str, hears: &str) -> Script {
    calls(id, "Bash", &json!({ "command": command }), hears)
}

/// The same with any tool.
fn calls(id: &str, tool: &str, input: &Value, hears: &str) -> Script {
    Script::new()
        .line(json!({
            "type": "control_request", "request_id": id,
            "request": {"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": id},
        }))
        .await_line(hears)
}

/// What the caller is told of a turn in which the agent asks, and how often a handler was called, which denies.
async fn told(asking: Script, change: impl FnOnce(&mut RunRequest)) -> (Told, usize) {
    let lab = Lab::new();
    let script = Script::new().await_line("go").claude_init().then(asking).claude_result("1").read_to_end();
    let mut frame = lab.request(&script);
    frame.prompt.clear();
    (frame.limits.startup, frame.limits.silence) = (LONG, LONG);
    frame.permissions.allow = vec!["Bash(git diff:*)".into(), "Bash(git push:*)".into()];
    frame.permissions.deny = vec!["Bash(git push:*)".into()];
    change(&mut frame);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let opening = Opening::new(frame).answered_by(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Answer::Deny { message: Some("No.".to_owned()) } }
    });
    let session = lab.runtime.open("claude", opening).unwrap();
    let told = rest_of(&mut session.send("go").unwrap()).await;
    bounded("the session's end", session.close()).await;
    lab.assert_all_dead();
    (told, calls.load(Ordering::Relaxed))
}

fn requests(told: &Told) -> usize {
    told.events.iter().filter(|event| matches!(event, Event::PermissionRequest(_))).count()
}

#[tokio::test]
async fn what_a_rule_answers_is_asked_of_nobody() {
    let asking = asks("r1", "git diff HEAD", r#""behavior":"allow""#).then(asks(
        "r2",
        "git push",
        "It is denied by the rule Bash(git push:*).",
    ));
    let (told, calls) = told(asking, |_| {}).await;
    told.is_good("1");
    assert_eq!((requests(&told), calls), (0, 0));
}

#[tokio::test]
async fn what_no_rule_answers_for_certain_is_asked() {
    let (told, calls) = told(asks("r1", "git diff; touch x", r#""message":"No.""#), |_| {}).await;
    told.is_good("1");
    assert_eq!((requests(&told), calls), (1, 1));
}

#[tokio::test]
async fn requests_that_come_at_once_are_each_answered_by_their_rule() {
    let lines = (0..20).fold(Script::new(), |lines, number| {
        let (command, answer) = if number % 2 == 0 { ("git diff", "allow") } else { ("git push", "deny") };
        let id = format!("r{number}");
        lines.then(asks(&id, command, &format!(r#""response":{{"behavior":"{answer}""#)))
    });
    let (told, calls) = told(lines, |_| {}).await;
    told.is_good("1");
    assert_eq!((requests(&told), calls), (0, 0));
}

#[tokio::test]
async fn what_a_deny_rule_may_mean_is_asked_even_where_all_is_allowed() {
    let (told, calls) = told(asks("r1", "a=x; $a push", r#""message":"No.""#), |frame| {
        frame.permissions.mode = PermissionMode::Full;
        frame.permissions.allow = vec!["Bash".into()];
    })
    .await;
    told.is_good("1");
    assert_eq!((requests(&told), calls), (1, 1));
}

#[tokio::test]
async fn a_path_is_compared_as_it_resolves_when_the_agent_asks() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("src")).unwrap();
    std::fs::create_dir_all(dir.path().join("secrets")).unwrap();
    std::os::unix::fs::symlink("/etc", dir.path().join("src/link")).unwrap();
    std::os::unix::fs::symlink("../secrets", dir.path().join("src/alias")).unwrap();
    let write = |id, path: &str, hears| calls(id, "Write", &json!({"file_path": path, "content": "x"}), hears);
    let asking = write("r1", "src/new/file", r#""behavior":"allow""#)
        .then(write("r2", "src/link/passwd", r#""message":"No.""#))
        .then(write("r3", "src/alias/key", "It is denied by the rule Write(secrets/**)."))
        .then(write("r4", "./src/../secrets/key", "It is denied by the rule Write(secrets/**)."));
    let (told, calls) = told(asking, |frame| {
        frame.cwd = Some(dir.path().to_owned());
        frame.permissions.allow = vec!["Write(src/**)".into()];
        frame.permissions.deny = vec!["Write(secrets/**)".into()];
    })
    .await;
    told.is_good("1");
    assert_eq!((requests(&told), calls), (1, 1));
}

#[tokio::test]
async fn where_it_may_only_read_no_rule_allows_anything() {
    let asking = asks("r1", "git diff", r#""message":"No.""#);
    let (told, calls) = told(asking, |frame| frame.permissions.mode = PermissionMode::ReadOnly).await;
    told.is_good("1");
    assert_eq!((requests(&told), calls), (1, 1));
}

#[tokio::test]
async fn a_session_with_what_is_no_rule_is_refused() {
    let lab = Lab::new();
    let mut frame = lab.request(&Script::new());
    frame.prompt.clear();
    frame.permissions.deny = vec!["Bash(rm".into()];
    let Err(RunError::Request(error)) = lab.runtime.open("claude", frame) else { panic!("it was opened") };
    assert!(error.to_string().starts_with(r#""Bash(rm" is no rule for tools: its bracket does not close"#), "{error}");
}
