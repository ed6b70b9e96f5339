//! `teamster session`: turns, their ids and their order, and invalid commands.

mod ends;
mod requests;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::command::{Ended, Running, capture, command, ended, until};

/// Reads the first line of a session.
const OPENING: &str = "read -r opening; ";
/// Reads a prompt and prints the recorded run.
const TURN: &str = "read -r prompt; cat \"$CAPTURE\"; ";
/// Streams an answer until it is interrupted.
const INTERRUPTED: &str = "read -r prompt; sed '$d' \"$STREAM\"; \
    while read -r line; do case $line in *interrupt*) tail -n 1 \"$STREAM\"; break;; esac; done; ";
/// Requests permission in a turn, and records the answer.
const REQUEST: &str = "read -r prompt; head -n 4 \"$CAPTURE\"; echo \"$REQUEST\"; read -r answer; echo \"$answer\" >> \"$RECEIVED\"; \
    sed 1,4d \"$CAPTURE\"; ";
const REST: &str = "cat >/dev/null";

/// Returns `teamster session` with this script as the agent's CLI.
fn session(script: &str, args: &[&str]) -> Command {
    let mut command = command("session", &format!("{OPENING}{script}{REST}"), args);
    command.env("STREAM", capture("sig_int_stream")).stdin(Stdio::piped());
    command
}

/// Returns the same, with a CLI that requests permission for a tool call, or asks a question.
fn session_with_request(script: &str, received: &Path, tool: &str, input: &Value) -> Command {
    let request = json!({
        "type": "control_request", "request_id": "r1",
        "request": {"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t1"},
    });
    let mut command = session(script, &["--answer-timeout", "10m"]);
    command.env("REQUEST", request.to_string()).env("RECEIVED", received);
    command
}

/// Runs a session with all these lines as its input.
fn run_session(mut command: Command, lines: &str) -> Ended {
    let mut running = Running::start(&mut command);
    running.type_in(lines.as_bytes());
    running.end()
}

fn events(end: &Ended) -> Vec<Value> {
    end.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Returns the events of the turn with this id.
fn turn<'a>(events: &'a [Value], id: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["turnId"] == id).collect()
}

fn is_done(event: &Value) -> bool {
    event["type"] == "done"
}

/// Returns the errors of rejected commands: line, message and command id.
fn rejections(events: &[Value]) -> Vec<(u64, String, Option<&str>)> {
    let errors = events.iter().filter(|event| event.get("line").is_some());
    errors
        .map(|error| {
            assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!("INVALID_REQUEST")), "{error}");
            let message = error["message"].as_str().unwrap().to_owned();
            (error["line"].as_u64().unwrap(), message, error["commandId"].as_str())
        })
        .collect()
}

#[test]
fn every_event_of_a_turn_has_the_id_of_its_command_and_turns_do_not_mix() {
    let lines = r#"{"type":"send","text":"one","id":"a"}
        {"type":"send","text":"two","id":"b"}
        {"type":"send","text":"three"}
    "#;
    let end = run_session(session(&TURN.repeat(3), &[]), lines);
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let ids: Vec<_> = events.iter().map(|event| event["turnId"].as_str().unwrap_or("none")).collect();
    let mut order = ids.clone();
    order.dedup();
    assert_eq!(order, ["a", "b", "none"]);
    for id in ["a", "b", "none"] {
        let of_turn: Vec<_> = events.iter().zip(&ids).filter(|(_, of)| **of == id).map(|(event, _)| event).collect();
        assert_eq!(of_turn.iter().filter(|event| is_done(event)).count(), 1);
        assert!(is_done(of_turn.last().unwrap()));
        assert!(of_turn.iter().any(|event| event["type"] == "text"));
    }
}

/// Answers the request to remove a prompt from the queue.
const CANCEL_ANSWERED: &str = "read -r cancel; id=$(echo \"$cancel\" | sed 's/.*\"request_id\":\"\\([^\"]*\\)\".*/\\1/'); \
    echo '{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"'\"$id\"'\",\"response\":{\"cancelled\":'$given'}}}'; ";

#[test]
fn turns_that_the_agent_starts_by_itself_have_their_own_ids_and_do_not_mix_with_others() {
    let own = "head -n 1 \"$CAPTURE\"; ";
    let rest = "sed 1d \"$CAPTURE\"; ";
    // The agent starts a turn by itself when the second prompt arrives, which it removes from its queue.
    let script = format!(
        "read -r prompt; {own} given=false; {CANCEL_ANSWERED} {rest} read -r prompt; {own} given=true; {CANCEL_ANSWERED} {rest} \
         read -r prompt; {own} given=false; {CANCEL_ANSWERED} {rest}"
    );
    let lines = concat!(
        r#"{"type":"send","text":"zero","id":"own-7"}"#,
        "\n",
        r#"{"type":"send","text":"one","id":"a"}"#,
        "\n",
        r#"{"type":"send","text":"two","id":"b"}"#,
        "\n",
    );
    let end = run_session(session(&script, &["--background-tasks"]), lines);
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let rejected = rejections(&events);
    assert_eq!((rejected.len(), rejected[0].0, rejected[0].2), (1, 1, Some("own-7")));
    let mut order: Vec<_> = events.iter().filter_map(|event| event["turnId"].as_str()).collect();
    order.dedup();
    assert_eq!(order, ["a", "own-1", "b"]);
    for id in order {
        assert_eq!(turn(&events, id).into_iter().filter(|event| is_done(event)).count(), 1, "{id}");
    }
}

/// Asserts that every line has the run id of the session and a time.
fn assert_stamped(events: &[Value]) {
    for event in events {
        assert!(event["runId"].is_string() && event["runId"] == events[0]["runId"], "{event}");
        assert!(event["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
    }
}

#[test]
fn a_prompt_that_is_sent_now_joins_the_running_turn_or_is_the_next_one() {
    // The script echoes a prompt during a turn, once.
    let script = "read -r prompt; head -n 4 \"$CAPTURE\"; read -r prompt; \
        echo \"$prompt\" | sed 's/}$/,\"isReplay\":true}/'; sed 1,4d \"$CAPTURE\"; ";
    let lines = concat!(
        r#"{"type":"send","text":"one","id":"a"}"#,
        "\n",
        r#"{"type":"send","text":"two","id":"b","now":true}"#,
        "\n",
    );
    let mut running = Running::start(&mut session(&format!("{script}{TURN}"), &[]));
    running.type_in(lines.as_bytes());
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let joined: Vec<_> = events.iter().filter(|event| event["type"] == "joined").collect();
    assert_eq!(joined.len(), 1, "{events:?}");
    let fields = ["line", "commandId", "turnId"].map(|name| joined[0][name].clone());
    assert_eq!(fields, [json!(2), json!("b"), json!("a")]);
    assert_stamped(&events);
    assert_eq!(turn(&events, "b").len(), 0);

    let lines = concat!(
        r#"{"type":"send","text":"  ","id":"empty","now":true}"#,
        "\n",
        r#"{"type":"send","text":"one","id":"a","now":true}"#
    );
    let end = run_session(session(TURN, &[]), lines);
    let events = self::events(&end);
    assert_eq!(rejections(&events).len(), 1);
    assert!(is_done(turn(&events, "a").last().unwrap()), "without a running turn it is a turn");
}

#[test]
fn an_invalid_command_is_an_error_with_its_line_and_ends_nothing() {
    let mut lines = b"hello\n\n{\"type\":\"send\",\"text\":\"\xff\"}\n".to_vec();
    lines.extend_from_slice(
        br#"{"type":"send","id":"x"}
{"type":"send","text":"  ","id":"empty"}
{"type":"send","text":"a","id":"gone","attachments":[{"path":"/nowhere/at/all"}]}
{"type":"interrupt","id":"early"}
{"type":"answer","requestId":"r","decision":"deny","id":"no-request"}
{"type":"answer","requestId":"r","decision":"allow","message":"why","id":"odd"}
{"type":"answer","requestId":"r"}
{"type":"set_model","model":"-x","id":"flag"}
{"type":"send","text":"good","id":"good"}"#,
    );
    let mut running = Running::start(&mut session(TURN, &[]));
    running.type_in(&lines);
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    assert_stamped(&events);
    let errors: Vec<_> =
        rejections(&events).into_iter().map(|(line, message, id)| format!("{line} {id:?} {message}")).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
    1 None line 1: invalid JSON: expected value at byte 1
    3 None line 3: invalid UTF-8 at byte 24
    4 Some("x") line 4: send: missing field `text`
    5 Some("empty") line 5: the prompt is empty: describe what the agent should do
    6 Some("gone") line 6: cannot attach /nowhere/at/all: No such file or directory (os error 2)
    7 Some("early") line 7: no turn is running
    8 Some("no-request") line 8: the request r does not wait for an answer: it is unknown, was answered before, or its turn has ended
    9 Some("odd") line 9: a message is valid only with the decision deny
    10 None line 10: an answer needs a decision (allow, allow_always or deny), an optionId, or choices for a question
    11 Some("flag") line 11: model must not start with '-': "-x"
    "#);
    assert!(is_done(turn(&events, "good").last().unwrap()));
    assert_eq!(events.iter().filter(|event| is_done(event)).count(), 1);
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_session() {
    let mut command = session(&format!("{INTERRUPTED}{TURN}"), &["--grace", "60s"]);
    let mut running = Running::start(&mut command);
    running.write_line(r#"{"type":"send","text":"one","id":"a"}"#);
    running.wait_for_out("\"type\":\"text\"");
    running.write_line(r#"{"type":"interrupt"}"#);
    running.wait_for_out("\"type\":\"done\"");
    running.type_in(br#"{"type":"send","text":"two","id":"b"}"#);
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    assert_eq!(turn(&events, "a").last().unwrap()["result"]["aborted"], true);
    assert_eq!(turn(&events, "b").last().unwrap()["result"]["isError"], false);
    assert!(!end.out.contains("SESSION_REOPENED"));
}

#[test]
fn another_model_and_another_mode_apply_to_the_next_turns() {
    let directory = tempfile::tempdir().unwrap();
    let (received, starts) = (directory.path().join("received"), directory.path().join("starts"));
    let script = format!(
        "echo \"$@\" >> \"$STARTS\"; {TURN} while read -r line; do echo \"$line\" >> \"$RECEIVED\"; \
         case $line in *'\"user\"'*) cat \"$CAPTURE\";; esac; done; "
    );
    let mut command = session(&script, &[]);
    let mut running = Running::start(command.env("RECEIVED", &received).env("STARTS", &starts));
    running.write_line(r#"{"type":"send","text":"one","id":"a"}"#);
    running.wait_for_out("\"type\":\"done\"");
    running.write_line(r#"{"type":"set_model","model":"another-model"}"#);
    running.write_line(r#"{"type":"send","text":"two","id":"b"}"#);
    until("the second prompt is received", || {
        std::fs::read_to_string(&received).is_ok_and(|received| received.contains("two"))
    });
    assert!(std::fs::read_to_string(&received).unwrap().contains("another-model"), "in the same process");
    running.write_line(r#"{"type":"set_permission_mode","mode":"edit"}"#);
    running.type_in(br#"{"type":"send","text":"three","id":"c"}"#);
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    for id in ["b", "c"] {
        assert_eq!(turn(&events, id).last().unwrap()["result"]["isError"], false);
    }
    let starts = std::fs::read_to_string(&starts).unwrap();
    let second = starts.lines().nth(1).unwrap_or_else(|| panic!("another process is needed: {starts}"));
    assert!(second.contains("--permission-mode=default") && second.contains("another-model"), "{second}");
}

#[test]
fn attachments_are_paths_or_content() {
    let directory = tempfile::tempdir().unwrap();
    let received = directory.path().join("received");
    std::fs::write(directory.path().join("note.txt"), "from a file").unwrap();
    let script = "read -r prompt; echo \"$prompt\" > \"$RECEIVED\"; cat \"$CAPTURE\"; ";
    let mut command = session(script, &["-C", directory.path().to_str().unwrap()]);
    command.env("RECEIVED", &received);
    let end = run_session(
        command,
        r#"{"type":"send","text":"read","attachments":[{"path":"note.txt"},{"data":{"name":"b.txt","data":"aW5saW5l"}}]}"#,
    );
    assert_eq!(end.code, Some(0), "{}{}", end.out, end.err);
    let received = std::fs::read_to_string(&received).unwrap();
    assert!(received.contains("from a file") && received.contains("inline"), "{received}");
}

#[test]
fn invalid_arguments_start_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    for args in [&["--cwd", "/nowhere/at/all"][..], &["--batch"], &["--model=-x"], &["a prompt"]] {
        let mut command = session(": > \"$TRACE\"; ", args);
        command.env("TRACE", &trace).stdin(Stdio::null());
        let end = ended(command);
        assert_eq!((end.code, end.out.as_str()), (Some(2), ""), "{args:?}: {}", end.err);
        assert!(!trace.exists(), "{args:?}");
    }
}

#[test]
fn a_waiting_turn_is_interrupted_by_its_id_and_ends_before_the_running_one() {
    let script =
        "read -r prompt; sed '$d' \"$STREAM\"; while [ ! -e \"$GO\" ]; do sleep 0.05; done; tail -n 1 \"$STREAM\"; ";
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let mut command = session(&format!("{script}{TURN}"), &[]);
    command.env("GO", &go);
    let mut running = Running::start(&mut command);
    for (text, id) in [("one", "a"), ("two", "b"), ("three", "c")] {
        running.write_line(&json!({"type": "send", "text": text, "id": id}).to_string());
    }
    running.write_line(r#"{"type":"interrupt","turnId":"b"}"#);
    running.write_line(r#"{"type":"interrupt","turnId":"x","id":"i"}"#);
    running.write_line(r#"{"type":"close"}"#);
    // The first turn ends after the end of the second one was written.
    running.wait_for_out(r#""turnId":"b""#);
    running.wait_for_out(r#""commandId":"i""#);
    std::fs::write(&go, "").unwrap();
    let end = running.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events = events(&end);
    let types: Vec<_> = turn(&events, "b").iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["error", "done"]);
    for id in ["a", "c"] {
        assert!(is_done(turn(&events, id).last().unwrap()));
    }
    assert_eq!(rejections(&events), [(5, "line 5: no turn \"x\" runs or waits".to_owned(), Some("i"))]);
}
