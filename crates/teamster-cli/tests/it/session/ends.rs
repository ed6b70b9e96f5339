//! The end of `teamster session`: signals, closed streams, exit codes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use rustix::io::ioctl_fionbio;
use rustix::process::Signal;

use super::{INTERRUPTED, TURN, events, run_session, session, turn};
use crate::command::{Running, capture, lives, read_until, signal_to, wait};

#[test]
fn a_closed_standard_output_ends_the_session_and_no_process_remains() {
    let directory = tempfile::tempdir().unwrap();
    for between_turns in [true, false] {
        let pid = directory.path().join(format!("pid-{between_turns}"));
        let turn = if between_turns { TURN } else { "read -r prompt; sed '$d' \"$CAPTURE\"; " };
        let mut command = session(&format!("echo $$ > \"$PID_FILE\"; {turn}"), &["--grace", "200ms"]);
        let mut child = command.env("PID_FILE", &pid).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // Standard input stays open.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"{\"type\":\"send\",\"text\":\"one\"}\n").unwrap();
        let last = if between_turns { "\"type\":\"done\"" } else { "\"type\":\"text\"" };
        drop(read_until(child.stdout.take().unwrap(), last));
        assert_eq!(wait(&mut child), Some(141), "{between_turns}");
        assert!(!lives(&pid), "{between_turns}");
    }
}

#[test]
fn a_signal_ends_the_running_turn_and_the_session() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut running = Running::start(&mut session(INTERRUPTED, &["--grace", "60s"]));
        running.write_line(r#"{"type":"send","text":"one","id":"a"}"#);
        running.write_line(r#"{"type":"send","text":"two","id":"b"}"#);
        running.wait_for_out("\"type\":\"text\"");
        running.signal(signal);
        assert_eq!(running.wait_for_exit(), Some(130), "{signal:?}");
        let end = running.end();
        assert_eq!(end.err.contains("Ctrl-C again"), signal == Signal::INT, "{}", end.err);
        let events = events(&end);
        for id in ["a", "b"] {
            assert_eq!(turn(&events, id).last().unwrap()["result"]["aborted"], true, "{signal:?} {id}");
        }
    }
}

#[test]
fn a_signal_between_turns_ends_the_session() {
    let mut running = Running::start(&mut session(TURN, &[]));
    running.write_line(r#"{"type":"send","text":"one"}"#);
    running.wait_for_out("\"type\":\"done\"");
    running.signal(Signal::TERM);
    assert_eq!(running.wait_for_exit(), Some(130));
}

#[test]
fn a_second_ctrl_c_kills_an_agent_that_ignores_the_first_and_no_process_remains() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let script = "echo $$ > \"$PID_FILE\"; read -r prompt; sed '$d' \"$CAPTURE\"; ";
    let mut command = session(script, &["--grace", "60s"]);
    let mut running = Running::start(command.env("PID_FILE", &pid));
    running.write_line(r#"{"type":"send","text":"one"}"#);
    running.wait_for_out("\"type\":\"text\"");
    running.signal(Signal::INT);
    running.wait_for_err("press Ctrl-C again to kill it");
    running.signal(Signal::INT);
    assert_eq!(running.wait_for_exit(), Some(130));
    assert!(!lives(&pid));
}

#[test]
fn standard_error_that_is_not_read_does_not_keep_a_signal_from_ending_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let (_unread, mut full) = std::io::pipe().unwrap();
    ioctl_fionbio(&full, true).unwrap();
    while full.write(&[b'x'; 512]).is_ok() {}
    ioctl_fionbio(&full, false).unwrap();
    let script = "echo $$ > \"$PID_FILE\"; read -r prompt; sed '$d' \"$CAPTURE\"; ";
    let mut command = session(script, &["--grace", "100ms"]);
    command.env("PID_FILE", &pid).stdout(Stdio::piped()).stderr(full);
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"{\"type\":\"send\",\"text\":\"one\"}\n").unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(events.any(|line| line.contains("\"type\":\"text\"")));
    signal_to(&child, Signal::INT);
    assert_eq!(wait(&mut child), Some(130));
    assert!(!lives(&pid));
}

#[test]
fn the_exit_code_is_that_of_the_last_turn() {
    let send = r#"{"type":"send","text":"one"}"#;
    let mut failed = session(TURN, &[]);
    failed.env("CAPTURE", capture("limit_max_turns_1"));
    assert_eq!(run_session(failed, send).code, Some(1));
    assert_eq!(run_session(session(TURN, &["--cli-path", "no-such-program-anywhere"]), send).code, Some(127));
    assert_eq!(run_session(session("", &[]), "").code, Some(0), "no turn, no error");
}
