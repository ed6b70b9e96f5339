//! Two gateways that share a store, of which one is stopped (SIGSTOP) for longer than its lease.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::command::{Running, ended, until};
use crate::serve::Home;

const TOKEN: &str = "workers-token-0123456789abcdef0123456789";

/// A gateway with its own directory.
struct Worker {
    home: Home,
    running: Running,
    url: String,
}

impl Worker {
    /// Starts a gateway whose agent plays these steps. `before` are lines of shell that its agent runs first.
    fn start(steps: &str, store: &Path, before: &str) -> Self {
        let more = format!(
            "store = '{}'\ninterrupted = 'resume'\n[serve.timing]\nlease = '3s'\naffinity_timeout = '0s'\n",
            store.display()
        );
        let home = Home::new(steps, &more);
        let agent = home.path().join("agent.sh");
        let program = fs::read_to_string(&agent).unwrap();
        let before = format!("#!/bin/sh\n[ \"$1\" = --version ] || {{\n{before}\n}}\n");
        fs::write(&agent, program.replace("#!/bin/sh\n", &before)).unwrap();
        let mut running = Running::start(home.command(&["serve"]).env("TEAMSTER_TOKEN", TOKEN));
        let url = running.out_until("try it:").lines().next().unwrap().to_owned();
        Self { home, running, url }
    }

    fn client(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.env("TEAMSTER_SERVER", &self.url).env("TEAMSTER_TOKEN", TOKEN);
        command
    }

    fn log(&self, conversation: &str) -> Vec<Value> {
        let lines = ended(self.client(&["tail", conversation, "--no-follow", "--output", "ndjson"]));
        assert_eq!(lines.code, Some(0), "{}", lines.err);
        lines.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Stops it with SIGTERM.
    fn end(mut self) {
        self.running.signal(Signal::TERM);
        assert_eq!(self.running.wait_for_exit(), Some(0));
    }
}

fn of_kind<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn the_agent_of_a_stopped_gateway_is_dead_before_another_gateway_answers_its_turn_once() {
    let shared = tempfile::tempdir().unwrap();
    let (store, pids, slow, overlap) =
        (shared.path().join("store.db"), shared.path().join("pids"), shared.path().join("slow"), shared.path().join("overlap"));
    fs::write(&slow, "").unwrap();
    // The agent of the first gateway has a tool in a session of its own, and answers in time only after the file is gone.
    let first = Worker::start(
        "{ say = 'begin' }, { waitMs = 60000 }",
        &store,
        &format!(
            "if [ -e {0} ]; then setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $! $$ > {1}; else set -- quick \"$@\"; fi",
            slow.display(),
            pids.display()
        ),
    );
    let quick = first.home.path().join("quick.toml");
    fs::write(&quick, "[[turns]]\nsteps = [{ say = 'You said: {prompt}' }]\n").unwrap();
    let agent = first.home.path().join("agent.sh");
    let slow_line = fs::read_to_string(&agent).unwrap();
    let quick_line = format!(
        "[ \"$1\" != quick ] || {{ shift; exec {} fake --agent claude --script {} -- \"$@\"; }}\nexec ",
        env!("CARGO_BIN_EXE_teamster"),
        quick.display()
    );
    fs::write(&agent, slow_line.replace("exec ", &quick_line)).unwrap();

    let accepted = ended(first.client(&["send", "--no-wait", "--output", "json", "hello"]));
    let accepted: Value = serde_json::from_str(&accepted.out).unwrap();
    let conversation = accepted["conversationId"].as_str().unwrap().to_owned();
    until("the agent has begun", || !of_kind(&first.log(&conversation), "text").is_empty());

    first.running.signal(Signal::STOP);
    // Each of its agents looks for those of the stopped gateway.
    let second = Worker::start(
        "{ say = 'You said: {prompt}' }",
        &store,
        &format!(
            "for pid in $(cat {}); do kill -0 $pid 2>/dev/null && echo $pid >> {}; done",
            pids.display(),
            overlap.display()
        ),
    );
    until("the second gateway has answered", || !of_kind(&second.log(&conversation), "turn_finished").is_empty());
    assert!(!overlap.exists(), "alive when the second agent started: {}", fs::read_to_string(&overlap).unwrap());
    let log = second.log(&conversation);
    assert_eq!(of_kind(&log, "turn_finished")[0]["state"], "done", "{log:?}");
    assert_eq!(of_kind(&log, "turn_started").len(), 2, "{log:?}");

    fs::remove_file(&slow).unwrap();
    let mut first = first;
    first.running.signal(Signal::CONT);
    first.running.wait_for_err("the lease was lost");
    assert_eq!(second.log(&conversation), log, "the first gateway wrote nothing");
    let again = ended(first.client(&["send", "--output", "text", "again"]));
    assert_eq!((again.code, again.out.trim()), (Some(0), "You said: again"), "{}", again.err);
    first.end();
    second.end();
}
