//! Exit codes and their error messages.

use std::fs::File;
use std::process::Stdio;

use crate::command::{ANSWER, LISTEN, capture, ended, lives, read_until, rest_of, teamster, wait};

#[test]
fn a_run_that_succeeds_exits_with_0() {
    let end = ended(teamster(ANSWER, &["hi"]));
    assert_eq!(end.code, Some(0), "{}", end.err);
    assert!(end.out.contains("Hello, wörld! 👋"), "{}", end.out);
    assert!(end.err.contains("session 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4"), "{}", end.err);
}

#[test]
fn a_run_that_fails_exits_with_1() {
    let mut command = teamster(ANSWER, &["hi"]);
    command.env("CAPTURE", capture("limit_max_turns_1"));
    let end = ended(command);
    assert_eq!(end.code, Some(1));
    assert!(end.err.contains("error: Reached maximum number of turns (1) [MAX_TURNS]"), "{}", end.err);
    assert!(end.err.contains("hint: raise --max-turns"), "{}", end.err);
}

#[test]
fn a_cli_that_crashes_fails_the_run_with_its_stderr() {
    let end = ended(teamster("echo 'first words' >&2; echo 'last words' >&2; exit 3", &["hi"]));
    assert_eq!((end.code, end.out.as_str()), (Some(1), ""));
    assert!(end.err.contains("exited with code 3") && end.err.contains("first words"), "{}", end.err);
}

#[test]
fn wrong_usage_exits_with_2_and_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let cases: &[(&[&str], &str)] = &[
        (&["--output", "xml", "hi"], "invalid value 'xml'"),
        (&["--agent", "unknown-agent", "hi"], "there are: acp, claude"),
        (&["--cwd", "/nowhere/at/all", "hi"], "error: --cwd \"/nowhere/at/all\" is not a directory"),
        (&["--attach", "/nowhere/at/all", "hi"], "error: cannot attach /nowhere/at/all"),
        (&[], "error: the prompt is empty"),
    ];
    for (args, message) in cases {
        let mut command = teamster(": > \"$TRACE\"", args);
        let end = ended({
            command.env("TRACE", &trace);
            command
        });
        assert_eq!((end.code, end.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(end.err.contains(message), "{args:?}: {}", end.err);
        assert!(!trace.exists(), "{args:?} started the CLI");
    }
}

#[test]
fn an_expired_timeout_or_deadline_exits_with_124() {
    let silent = "sleep 60";
    for (limit, code) in [("--startup-timeout", "WATCHDOG_TIMEOUT"), ("--deadline", "DEADLINE_EXCEEDED")] {
        let end = ended(teamster(silent, &[limit, "200ms", "--grace", "200ms", "hi"]));
        assert_eq!(end.code, Some(124), "{limit}: {}", end.err);
        assert!(end.err.contains(code) && end.err.contains(" hint: "), "{limit}: {}", end.err);
    }
}

#[test]
fn a_missing_cli_exits_with_127() {
    let end = ended(teamster("", &["--cli-path", "no-such-program-anywhere", "hi"]));
    assert_eq!((end.code, end.out.as_str()), (Some(127), ""));
    assert!(end.err.contains("no-such-program-anywhere") && end.err.contains("CLI_NOT_FOUND"), "{}", end.err);
    assert!(end.err.contains("hint: check the program that --cli-path"), "{}", end.err);
}

#[test]
fn a_reader_that_closes_the_output_stops_the_run_without_an_error_message() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let endless =
        format!("{LISTEN} echo $$ > \"$PID_FILE\"; head -n 4 \"$CAPTURE\"; while :; do sed -n 5p \"$CAPTURE\"; done");
    for format in ["pretty", "ndjson"] {
        let mut command = teamster(&endless, &["--output", format, "--grace", "200ms", "hi"]);
        command.env("PID_FILE", &pid).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(read_until(child.stdout.take().unwrap(), ""));
        assert_eq!(wait(&mut child), Some(141), "{format}");
        let message = rest_of(child.stderr.take().unwrap());
        assert_eq!(message, "", "{format}");
        assert!(!lives(&pid), "{format} left the CLI behind");
    }
}

#[test]
fn help_and_version_exit_with_0() {
    for args in [["--help"], ["-h"]] {
        let end = ended(teamster("", &args));
        assert_eq!((end.code, end.err.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_full_disk_is_an_error_that_exits_with_1() {
    let mut command = teamster(ANSWER, &["--output", "ndjson", "hi"]);
    let mut child = command.stdout(File::create("/dev/full").unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(wait(&mut child), Some(1));
    let message = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(message.starts_with("error: cannot write to standard output: "), "{message}");
}
