//! What is logged, and the stamps of events.

use serde_json::Value;

use crate::command::{ANSWER, capture, ended, teamster};

/// Prints the first lines of a recorded run, which calls a tool, and then nothing.
const HUNG: &str =
    "read -r opening; read -r prompt; grep -v '\"type\":\"user\"\\|\"type\":\"result\"' \"$CAPTURE\"; sleep 600";

#[test]
fn a_hung_run_is_explained_by_its_log() {
    let mut command = teamster(HUNG, &["--timeout", "700ms", "--tool-timeout", "700ms", "a secret prompt"]);
    command.env("CAPTURE", capture("tool_bash")).env("RUST_LOG", "teamster=debug").env("MY_TOKEN", "hunter2hunter2");
    let end = ended(command);
    assert_eq!(end.code, Some(124), "{}", end.err);
    let line = |words: &[&str]| end.err.lines().find(|line| words.iter().all(|word| line.contains(word)));
    for words in [
        ["the CLI was started", "run_id="].as_slice(),
        &["first output"],
        &["a tool is called", "tool=Bash"],
        &["waits for the agent's output", "limit: ", "after_s=0.7"],
        &["a limit was reached", "after_s=0.7"],
        &["the CLI has exited"],
        &["the run has failed", "WATCHDOG_TIMEOUT"],
        &["the run has ended"],
    ] {
        let found = line(words).unwrap_or_else(|| panic!("no line with {words:?}:\n{}", end.err));
        assert!(found.contains("teamster") && found.contains("agent=\"claude\""), "{found}");
    }
    for hidden in ["a secret prompt", "hunter2", "\u{1b}"] {
        assert!(!end.err.contains(hidden), "{hidden:?} is logged:\n{}", end.err);
    }
}

#[test]
fn nothing_is_logged_unless_requested_and_an_invalid_filter_is_rejected() {
    assert_eq!(ended(teamster(ANSWER, &["--output", "text", "hi"])).err, "");
    assert!(ended(teamster(ANSWER, &["--log", "debug", "--output", "text", "hi"])).err.contains("the run has ended"));
    let end = ended(teamster(ANSWER, &["--log", "teamster=loud", "hi"]));
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains("teamster=loud"), "{}", end.err);
}

#[test]
fn a_log_file_that_is_a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let end = ended(teamster(ANSWER, &["--log-file", fifo.to_str().unwrap(), "hi"]));
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains("fifo: it is no regular file"), "{}", end.err);
    let end = ended(teamster(ANSWER, &["--log-file", "/dev/stderr", "--output", "text", "hi"]));
    assert!(end.code == Some(0) && end.err.contains("the run has ended"), "{}", end.err);
    assert_eq!(ended(teamster(ANSWER, &["--log-file", "/dev/null", "--output", "text", "hi"])).code, Some(0));
}

#[test]
fn a_log_file_gets_the_lines_and_only_its_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    for _ in 0..2 {
        let end = ended(teamster(ANSWER, &["--log-file", file.to_str().unwrap(), "--output", "text", "hi"]));
        assert_eq!((end.code, end.err.as_str()), (Some(0), ""));
    }
    let log = std::fs::read_to_string(&file).unwrap();
    assert_eq!(log.matches("the run has ended").count(), 2, "{log}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let end = ended(teamster(ANSWER, &["--log-file", "/nonexistent/log", "hi"]));
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains("cannot open the log file /nonexistent/log"), "{}", end.err);
}

#[test]
fn each_event_has_its_run_its_time_and_its_labels_and_starts_with_its_type() {
    let end = ended(teamster(ANSWER, &["--output", "ndjson", "--label", "user=7", "--label", "job=a=b", "hi"]));
    assert_eq!(end.code, Some(0), "{}", end.err);
    let events: Vec<Value> = end.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(end.out.lines().all(|line| line.starts_with(r#"{"type":""#)), "{}", end.out);
    let run = events[0]["runId"].as_str().unwrap();
    let mut last = "";
    for event in &events {
        assert_eq!(event["runId"], run);
        assert_eq!(event["labels"], serde_json::json!({"job": "a=b", "user": "7"}));
        let time = event["time"].as_str().unwrap();
        assert!(
            time.starts_with("20") && time.ends_with('Z') && time >= last.get(..19).unwrap_or_default(),
            "{time} after {last}"
        );
        last = time;
    }
    let other = ended(teamster(ANSWER, &["--output", "ndjson", "hi"]));
    assert!(!other.out.contains("\"labels\"") && !other.out.contains(run));
}
