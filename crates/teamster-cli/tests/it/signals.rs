//! Signals stop the run, its end is reported, and no process remains.

use std::process::{Command, Stdio};

use rustix::io::ioctl_fionread;
use rustix::process::Signal;

use crate::command::{Ended, LISTEN, Running, capture, lives, signal_to, teamster, until, wait};

/// Streams an answer, and stops when it is asked to.
const POLITE: &str = "read -r opening; read -r prompt; sed '$d' \"$CAPTURE\"; \
    while read -r line; do case $line in *interrupt*) tail -n 1 \"$CAPTURE\"; break;; esac; done; cat >/dev/null";

fn polite(format: &str) -> Command {
    let mut command = teamster(POLITE, &["--output", format, "--grace", "60s", "hi"]);
    command.env("CAPTURE", capture("sig_int_stream"));
    command
}

/// The `done` that stands at the end of the events.
fn result_of(end: &Ended) -> serde_json::Value {
    let events: Vec<serde_json::Value> = end.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.iter().filter(|event| event["type"] == "done").count(), 1, "{}", end.out);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "done", "{}", end.out);
    last["result"].clone()
}

#[test]
fn ctrl_c_asks_the_agent_to_stop() {
    let mut running = Running::start(&mut polite("ndjson"));
    running.wait_for_out("\"type\":\"text\"");
    running.signal(Signal::INT);
    let end = running.end();
    let result = result_of(&end);
    assert_eq!((end.code, &result["aborted"]), (Some(130), &true.into()), "{}", end.err);
    assert!(end.err.contains("press Ctrl-C again to kill it"), "{}", end.err);
    assert!(
        end.err.contains("interrupted: ") && end.err.contains("hint: to resume: teamster run --agent claude --resume "),
        "{}",
        end.err
    );
}

#[test]
fn sigterm_and_sighup_ask_the_agent_to_stop() {
    for signal in [Signal::TERM, Signal::HUP] {
        let mut running = Running::start(&mut polite("ndjson"));
        running.wait_for_out("\"type\":\"text\"");
        running.signal(signal);
        let end = running.end();
        assert_eq!((end.code, &result_of(&end)["aborted"]), (Some(130), &true.into()), "{signal:?}: {}", end.err);
        assert!(!end.err.contains("Ctrl-C"), "{signal:?}: {}", end.err);
    }
}

#[test]
fn an_interrupted_run_still_prints_its_result() {
    let directory = tempfile::tempdir().unwrap();
    let started = directory.path().join("started");
    let script = format!(": > \"$STARTED\"; {POLITE}");
    let mut command = teamster(&script, &["--output", "json", "--grace", "60s", "hi"]);
    command.env("CAPTURE", capture("sig_int_stream")).env("STARTED", &started);
    let running = Running::start(&mut command);
    until("the CLI starts", || started.exists());
    running.signal(Signal::INT);
    let end = running.end();
    let result: serde_json::Value = serde_json::from_str(&end.out).unwrap();
    assert_eq!((end.code, &result["aborted"]), (Some(130), &true.into()), "{}", end.err);
}

#[test]
fn a_second_ctrl_c_kills_the_agent_and_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let (cli, background) = (directory.path().join("cli"), directory.path().join("background"));
    // Deaf to requests; and the grace period is longer than the test's patience.
    let deaf = format!(
        "{LISTEN} echo $$ > \"$CLI_PID\"; sleep 600 & echo $! > \"$BACKGROUND_PID\"; sed '$d' \"$CAPTURE\"; cat >/dev/null"
    );
    let mut command = teamster(&deaf, &["--output", "ndjson", "--grace", "60s", "hi"]);
    command.env("CLI_PID", &cli).env("BACKGROUND_PID", &background);
    let mut running = Running::start(&mut command);
    running.wait_for_out("\"type\":\"text\"");
    running.signal(Signal::INT);
    running.wait_for_err("press Ctrl-C again to kill it");
    running.signal(Signal::INT);
    let end = running.end();
    assert_eq!((end.code, &result_of(&end)["errorCode"]), (Some(130), &"ABORTED".into()), "{}", end.err);
    assert!(!lives(&cli) && !lives(&background));
}

#[test]
fn a_reader_that_does_not_read_cannot_block_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let pid = directory.path().join("pid");
    let endless = format!("{LISTEN} echo $$ > \"$CLI_PID\"; head -n 4 \"$CAPTURE\"; yes \"$(sed -n 5p \"$CAPTURE\")\"");
    let mut command = teamster(&endless, &["--output", "ndjson", "--grace", "100ms", "hi"]);
    let mut child = command.env("CLI_PID", &pid).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let out = child.stdout.take().unwrap();
    // A pipe holds 16 pages, and each write may leave a part of a page unused.
    until("the pipe is full", || ioctl_fionread(&out).unwrap() > 40_000);
    until("the command ends", || {
        let ended = child.try_wait().unwrap().is_some();
        if !ended {
            signal_to(&child, Signal::INT);
        }
        ended
    });
    assert_eq!(wait(&mut child), Some(130));
    assert!(!lives(&pid));
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    let script = format!(
        "{LISTEN} head -n 5 \"$CAPTURE\"; until test -e \"$GO\"; do sleep 0.05; done; \
         sed 1,5d \"$CAPTURE\"; cat >/dev/null"
    );
    let inner = teamster(&script, &["--output", "ndjson", "hi"]);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    command.env_clear().stdin(Stdio::null()).env("GO", &go);
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut running = Running::start(&mut command);
    running.wait_for_out("\"type\":\"text\"");
    running.signal(Signal::HUP);
    std::fs::write(&go, "").unwrap();
    let end = running.end();
    assert_eq!((end.code, &result_of(&end)["isError"]), (Some(0), &false.into()), "{}", end.err);
}

#[test]
fn ctrl_c_stops_a_run_that_waits_for_a_retry() {
    let overloaded = format!("{LISTEN} cat \"$CAPTURE\"; cat >/dev/null; exit 1");
    let mut command = teamster(&overloaded, &["--output", "ndjson", "--retries", "3", "hi"]);
    let mut running = Running::start(command.env("CAPTURE", capture("err_529_max_retries_0")));
    running.wait_for_out("\"errorCode\":\"OVERLOADED\"");
    running.signal(Signal::INT);
    let end = running.end();
    let result = result_of(&end);
    assert_eq!((end.code, &result["aborted"]), (Some(130), &true.into()), "{}", end.err);
    assert!(end.out.contains("\"max\":3") && !end.out.contains("\"attempt\":2"), "{}", end.out);
}
