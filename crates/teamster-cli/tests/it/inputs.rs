//! What reaches the agent's CLI.

use std::process::{Command, Stdio};

use crate::command::{ANSWER, Running, ended, teamster};
use crate::screen::Terminal;

#[test]
fn a_prompt_from_stdin_reaches_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let received = directory.path().join("received");
    let script =
        "read -r opening; read -r prompt; printf '%s' \"$prompt\" > \"$RECEIVED\"; cat \"$CAPTURE\"; cat >/dev/null";
    for args in [&[][..], &["-"]] {
        let mut command = teamster(script, args);
        command.env("RECEIVED", &received).stdin(Stdio::piped());
        let mut running = Running::start(&mut command);
        running.type_in("Grüße, /fix it\n".as_bytes());
        assert_eq!(running.end().code, Some(0));
        let message: serde_json::Value = serde_json::from_slice(&std::fs::read(&received).unwrap()).unwrap();
        assert_eq!(message["message"]["content"], "Grüße, /fix it", "{args:?}");
    }
}

/// A CLI that stores the prompt in a file.
const STORE: &str =
    "read -r opening; read -r prompt; printf '%s' \"$prompt\" > \"$RECEIVED\"; cat \"$CAPTURE\"; cat >/dev/null";

/// Returns the prompt that the agent received.
fn received(file: &std::path::Path) -> String {
    let message: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    message["message"]["content"].as_str().unwrap().to_owned()
}

#[test]
fn piped_input_reaches_the_agent_with_the_prompt() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("received");
    for (args, expected) in [(&["Review"][..], "Review\n\n<stdin-"), (&["--stdin=ignore", "Review"], "Review")] {
        let mut command = teamster(STORE, args);
        command.env("RECEIVED", &file).stdin(Stdio::piped());
        let mut running = Running::start(&mut command);
        running.type_in(b"a diff\n");
        assert_eq!(running.end().code, Some(0));
        let prompt = received(&file);
        assert!(prompt.starts_with(expected), "{prompt}");
        assert_eq!(prompt.contains(">\na diff\n</stdin-"), args.len() == 1, "{prompt}");
    }
}

#[test]
fn a_pipe_that_stays_open_is_reported_and_data_that_comes_late_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("received");
    let mut command = teamster(STORE, &["Review"]);
    command.env("RECEIVED", &file).stdin(Stdio::piped());
    let mut running = Running::start(&mut command);
    running.wait_for_err("reading standard input to its end (to skip it: --stdin ignore)");
    running.type_in(b"late\n");
    assert_eq!(running.end().code, Some(0));
    assert!(received(&file).contains(">\nlate\n</stdin-"));
}

#[test]
fn a_pipe_that_stays_open_does_not_delay_a_run_that_ignores_it() {
    let mut command = teamster(ANSWER, &["--stdin", "ignore", "hi"]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(&mut command);
    assert_eq!(running.wait_for_exit(), Some(0));
}

#[test]
fn input_that_is_too_long_is_rejected_before_the_start() {
    let mut command = teamster("exit 9", &["hi"]);
    command.stdin(std::fs::File::open("/dev/zero").unwrap());
    let ended = ended(command);
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(ended.err.contains("standard input has more than 10 MiB"), "{}", ended.err);
}

#[test]
fn an_effort_that_the_agent_does_not_have_is_rejected_before_the_start() {
    let ended = ended(teamster("exit 9", &["--effort", "banana", "hi"]));
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(ended.err.contains("claude has no effort \"banana\": use low, medium, high, xhigh, max"), "{}", ended.err);
}

#[test]
fn options_and_variables_reach_the_cli() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = directory.path().join("arguments");
    let script = format!("printf '%s\\n' \"$@\" \"$EXTRA\" \"$PWD\" > \"$ARGUMENTS\"; {ANSWER}");
    let folder = directory.path().to_str().unwrap();
    let mut command = teamster(&script, &["-C", folder, "--cli-arg", "--strange", "--env", "EXTRA=an extra", "hi"]);
    command.env("ARGUMENTS", &arguments).env("BACKEND_MODEL", "a-model").env("BACKEND_MAX_TURNS", "7");
    command.env("ALLOWED_TOOLS", "Read,Bash(echo a,b)").env("AGENT_BACKEND", "");
    assert_eq!(ended(command).code, Some(0));
    let given = std::fs::read_to_string(&arguments).unwrap();
    let given: Vec<&str> = given.lines().collect();
    for expected in
        ["--model=a-model", "--max-turns=7", "--allowedTools=Bash(echo a,b)", "--strange", "an extra", folder]
    {
        assert!(given.contains(&expected), "{expected} is not in {given:?}");
    }
}

#[test]
fn an_argument_sends_no_control_sequence_to_the_terminal() {
    for arguments in [&["a\u{1b}]0;x\u{7}"][..], &["run", "--b\u{1b}[2J"], &["run", "--permission", "\u{1b}[8m"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
        command.args(arguments).env_clear().env("TERM", "xterm");
        let mut terminal = Terminal::start(&command, (80, 24));
        assert_eq!(terminal.wait_for_exit(), 2, "{}", terminal.text());
        let sent = terminal.sent();
        assert!(sent.contains("error:") && !sent.contains('\u{1b}'), "{sent:?}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
    command.args(["run", "--nothing"]).env_clear().env("TERM", "xterm");
    let mut terminal = Terminal::start(&command, (80, 24));
    assert_eq!(terminal.wait_for_exit(), 2, "{}", terminal.text());
    assert!(terminal.sent().contains("\u{1b}[1m"), "{:?}", terminal.sent());
}
