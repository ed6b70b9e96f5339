//! Two gateways that share a store, of which one is stopped (SIGSTOP) for longer than its lease.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::command::{Running, ended, until};
use crate::serve::Home;

const TOKEN: &str = "workers-token-0123456789abcdef0123456789";

/// A gateway with a data directory of its own.
struct Worker {
    home: Home,
    running: Running,
    url: String,
}

impl Worker {
    fn start(shared: &Path) -> Self {
        let more = format!(
            "store = '{}'\ninterrupted = 'resume'\n[serve.timing]\nlease = '3s'\naffinity_timeout = '0s'\n",
            shared.join("store.db").to_str().unwrap()
        );
        let home = Home::new("", &more);
        fs::write(home.path().join("agent.sh"), agent(shared)).unwrap();
        let mut running = Running::start(home.command(&["serve"]).env("TEAMSTER_TOKEN", TOKEN));
        let url = running.out_until("try it:").lines().next().unwrap().to_owned();
        Self { home, running, url }
    }

    /// Stops it while it does not lock the store: the other one could not write then.
    fn stop(&self) {
        let pid = self.running.pid();
        until("it is stopped and does not write", || {
            self.running.signal(Signal::STOP);
            until("it is stopped", || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T "));
            let locks = fs::read_to_string("/proc/locks").unwrap();
            // The byte of the shared memory file that a writer locks.
            let writes =
                locks.lines().any(|lock| lock.contains(&format!(" WRITE {pid} ")) && lock.ends_with(" 120 120"));
            if writes {
                self.running.signal(Signal::CONT);
            }
            !writes
        });
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

    fn end(mut self) {
        self.running.signal(Signal::TERM);
        assert_eq!(self.running.wait_for_exit(), Some(0));
    }
}

/// Returns an agent that does not end while there is a file `slow`. It records its pid, and that of its tool, which has a session
/// of its own. An agent that is started later records which of these processes is alive.
fn agent(shared: &Path) -> String {
    format!(
        "#!/bin/sh\nscenario=quick\nif [ \"$1\" != --version ]; then if [ -e {0}/slow ]; then scenario=slow\n\
         setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $! $$ > {0}/pids\n\
         else for pid in $(cat {0}/pids); do kill -0 $pid 2>/dev/null && echo $pid >> {0}/alive; done; fi; fi\n\
         exec {1} fake --agent claude --script {0}/$scenario.toml -- \"$@\"\n",
        shared.to_str().unwrap(),
        env!("CARGO_BIN_EXE_teamster"),
    )
}

fn of_kind<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn the_agent_of_a_stopped_gateway_is_dead_before_another_gateway_answers_its_turn_once() {
    let shared = tempfile::tempdir().unwrap();
    let path = |name: &str| shared.path().join(name);
    fs::write(path("slow"), "").unwrap();
    fs::write(path("slow.toml"), "[[turns]]\nsteps = [{ say = 'begin' }, { waitMs = 60000 }]\n").unwrap();
    fs::write(path("quick.toml"), "[[turns]]\nsteps = [{ say = 'You said: {prompt}' }]\n").unwrap();
    let mut first = Worker::start(shared.path());
    let accepted = ended(first.client(&["send", "--no-wait", "--output", "json", "hello"]));
    let accepted: Value = serde_json::from_str(&accepted.out).unwrap();
    let conversation = accepted["conversationId"].as_str().unwrap();
    until("the agent has started", || !of_kind(&first.log(conversation), "text").is_empty());

    first.stop();
    fs::remove_file(path("slow")).unwrap();
    let second = Worker::start(shared.path());
    until("the second gateway has answered", || !of_kind(&second.log(conversation), "turn_finished").is_empty());
    assert!(!path("alive").exists(), "alive when the second agent started: {:?}", fs::read_to_string(path("alive")));
    let log = second.log(conversation);
    assert_eq!(of_kind(&log, "turn_finished")[0]["state"], "done", "{log:?}");
    assert_eq!(of_kind(&log, "turn_started").len(), 2, "{log:?}");

    first.running.signal(Signal::CONT);
    first.running.wait_for_err("the lease was lost");
    assert_eq!(second.log(conversation), log, "the first gateway wrote nothing");
    let again = ended(first.client(&["send", "--output", "text", "again"]));
    assert_eq!((again.code, again.out.trim()), (Some(0), "You said: again"), "{}", again.err);
    first.end();
    second.end();
}
