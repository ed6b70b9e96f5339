//! Permission requests and questions in `teamster session`, and the examples that answer them.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{REQUEST, TURN, events, is_done, rejections, session_with_request};
use crate::command::{Ended, Running};

#[test]
fn a_permission_request_is_answered_once_and_the_agent_receives_the_answer() {
    for (answer, expected) in [
        (r#""decision":"allow","input":{"command":"ls"}"#, r#"{"behavior":"allow","updatedInput":{"command":"ls"}}"#),
        (r#""decision":"allow_always""#, r#""behavior":"allow""#),
        (r#""decision":"deny","message":"Not today.""#, r#"{"behavior":"deny","message":"Not today."}"#),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let received = directory.path().join("received");
        let mut running =
            Running::start(&mut session_with_request(REQUEST, &received, "Bash", &json!({"command": "touch x"})));
        running.write_line(r#"{"type":"send","text":"one","id":"a"}"#);
        running.wait_for_out(r#""type":"permission_request""#);
        running.write_line(&format!(r#"{{"type":"answer","requestId":"r1",{answer}}}"#));
        running.write_line(r#"{"type":"answer","requestId":"r1","decision":"deny","id":"late"}"#);
        running.wait_for_out("\"commandId\":\"late\"");
        running.type_in(b"");
        let end = running.end();
        assert_eq!(end.code, Some(0), "{}", end.err);
        let received = std::fs::read_to_string(&received).unwrap();
        assert!(received.contains(expected) && received.lines().count() == 1, "{answer}: {received}");
    }
}

#[test]
fn a_question_is_answered_by_choices() {
    let directory = tempfile::tempdir().unwrap();
    let received = directory.path().join("received");
    let question = json!({"questions": [
        {"question": "Which?", "options": [{"label": "A"}, {"label": "B"}], "multiSelect": false}
    ]});
    let mut running = Running::start(&mut session_with_request(REQUEST, &received, "AskUserQuestion", &question));
    running.write_line(r#"{"type":"send","text":"one"}"#);
    running.wait_for_out(r#""type":"question""#);
    running.write_line(r#"{"type":"answer","requestId":"r1","choices":{"Which?":["B"]}}"#);
    running.wait_for_out("\"type\":\"done\"");
    running.type_in(b"");
    assert_eq!(running.end().code, Some(0));
    let received = std::fs::read_to_string(&received).unwrap();
    assert!(received.contains(r#""answers":{"Which?":"B"}"#), "{received}");
}

#[test]
fn a_request_after_the_end_of_the_input_is_denied_at_once() {
    for is_pending in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let received = directory.path().join("received");
        let mut running =
            Running::start(&mut session_with_request(REQUEST, &received, "Bash", &json!({"command": "touch x"})));
        running.write_line(r#"{"type":"send","text":"one","id":"a"}"#);
        if is_pending {
            running.wait_for_out(r#""type":"permission_request""#);
        }
        running.type_in(b"");
        let end = running.end();
        assert_eq!(end.code, Some(0), "{}", end.err);
        let received = std::fs::read_to_string(&received).unwrap();
        assert!(received.contains(r#""behavior":"deny""#), "{received}");
    }
}

#[test]
fn after_close_turns_that_were_sent_run_and_later_ones_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let received = directory.path().join("received");
    let mut running = Running::start(&mut session_with_request(
        &format!("{REQUEST}{TURN}"),
        &received,
        "Bash",
        &json!({"command": "touch x"}),
    ));
    for line in [
        r#"{"type":"send","text":"one","id":"a"}"#,
        r#"{"type":"send","text":"two","id":"b"}"#,
        r#"{"type":"close"}"#,
        r#"{"type":"send","text":"three","id":"c"}"#,
    ] {
        running.write_line(line);
    }
    running.wait_for_out(r#""type":"permission_request""#);
    running.write_line(r#"{"type":"answer","requestId":"r1","decision":"allow"}"#);
    // It exits although its input is still open.
    running.wait_for_exit();
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let done: Vec<_> = events.iter().filter(|event| is_done(event)).map(|event| event["turnId"].clone()).collect();
    assert_eq!(done, ["a", "b"]);
    assert_eq!(rejections(&events).iter().map(|(_, _, id)| *id).collect::<Vec<_>>(), [Some("c")]);
    assert!(std::fs::read_to_string(&received).unwrap().contains(r#""behavior":"allow""#));
}

/// Runs an example with `teamster` in its PATH. Returns `None` if the interpreter is not installed.
fn run_example(interpreter: &str, file: &str, script: &str, answers: &str) -> Option<Ended> {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_teamster"), directory.path().join("teamster")).unwrap();
    let received = directory.path().join("received");
    let prepared = session_with_request(script, &received, "Bash", &json!({"command": "touch x"}));
    let path = format!("{}:{}", directory.path().to_str().unwrap(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(interpreter);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file)).args(["one", "two"]);
    command.env_clear().envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
    command.env("HOME", directory.path()).env("TEAMSTER_OPTIONS", "--answer-timeout 10m").stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Command::new(interpreter).arg("--version").stdout(Stdio::null()).status().ok()?;
    let mut running = Running::start(&mut command);
    running.type_in(answers.as_bytes());
    let mut end = running.end();
    end.err += &std::fs::read_to_string(&received).unwrap_or_default();
    Some(end)
}

#[test]
fn the_examples_run_a_conversation() {
    for (interpreter, file) in [("python3", "session.py"), ("node", "session.mjs")] {
        for (answer, behavior) in [("y\n", r#""behavior":"allow""#), ("", r#""behavior":"deny""#)] {
            let Some(end) = run_example(interpreter, file, &format!("{REQUEST}{TURN}"), answer) else { continue };
            assert_eq!(end.code, Some(0), "{file}: {}", end.err);
            assert_eq!(end.out.matches("Hello, wörld!").count(), 2, "{file}: {}", end.out);
            assert!(end.out.contains(r#"Bash {"command"#) && end.err.contains(behavior), "{file}: {}", end.err);
        }
        let Some(end) = run_example(interpreter, file, "exit 3; ", "") else { continue };
        assert_eq!(end.code, Some(1), "{file}: {}", end.err);
        assert_eq!(end.err.matches("CLI_EXIT").count(), 2, "{file}: {}", end.err);
        let short = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
        assert!(std::fs::read_to_string(short).unwrap().lines().count() <= 40, "{file}");
    }
}
