//! Stories, told as each of the four CLIs to the command that drives it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use teamster::{Event, RunRequest, Runtime, Sent};
use tempfile::TempDir;

use crate::command::{BOUND, Ended, Running, command, ended};

/// The agent's CLI: a shell that plays what the variable `FAKE_CLI` says.
const CLI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-cli.sh");
const FAKE: &str = "exec \"$TEAMSTER\" fake --agent \"$AGENT\" --script \"$SCRIPT\" -- \"$@\"";

const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// A folder with a story, in which an agent works.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn with(story: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("story"), story).unwrap();
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command with `teamster fake` as the agent's CLI.
    fn command(&self, name: &str, agent: &str, script: &Path, args: &[&str]) -> Command {
        let mut command = command(name, FAKE, &["--agent", agent]);
        command.args(args).env("TEAMSTER", env!("CARGO_BIN_EXE_teamster")).env("AGENT", agent).env("SCRIPT", script);
        command.env("HOME", self.folder.path()).env("TMPDIR", self.folder.path()).current_dir(self.folder.path());
        command
    }

    fn run(&self, agent: &str, args: &[&str]) -> Ended {
        ended(self.command("run", agent, &self.file("story"), &[args, &["--output", "ndjson", "hi"]].concat()))
    }
}

fn events(end: &Ended) -> Vec<Value> {
    end.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Each agent, and how it is asked for each of its forms.
fn forms() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let live = AGENTS.map(|agent| (agent, &[][..]));
    let once = AGENTS[1..].iter().map(|agent| (*agent, &["--mode", "exec"][..]));
    live.into_iter().chain(once)
}

const LOOK: &str = r#"
[[turns]]
steps = [
  { think = "The user wants files." },
  { say = "Let me look." },
  { run = { command = "ls", output = "a.txt\n" } },
  { run = { command = "false", output = "no\n", exit = 3 } },
  { say = "You said: {prompt}" },
]
"#;

#[test]
fn a_story_is_a_run_of_each_agent_in_each_of_its_forms() {
    let stage = Stage::with(LOOK);
    for (agent, args) in forms() {
        let end = stage.run(agent, args);
        assert_eq!(end.code, Some(0), "{agent} {args:?}: {}\n{}", end.err, end.out);
        let events = events(&end);
        let result = &events.last().unwrap()["result"];
        assert_eq!(result["finalText"], "You said: hi", "{agent} {args:?}");
        assert!(result["text"].as_str().unwrap().contains("Let me look."), "{agent} {args:?}");
        assert!(result["sessionId"].is_string());
        // A server that cannot exit by itself was ended, which is no news.
        let code = if (agent, args.is_empty()) == ("opencode", true) { Value::Null } else { 0.into() };
        assert_eq!((&result["exitCode"], &result["signal"]), (&code, &Value::Null), "{agent} {args:?}");
        // A run of Gemini CLI is one-shot in both.
        assert_eq!(of(&events, "thinking").is_empty(), agent == "gemini", "{agent} {args:?}");
        let calls = of(&events, "tool_use");
        assert_eq!(calls.iter().map(|call| &call["input"]["command"]).collect::<Vec<_>>(), ["ls", "false"], "{agent}");
        assert!(calls.iter().all(|call| call["kind"] == "execute"), "{agent} {calls:?}");
        let results = of(&events, "tool_result");
        assert!(results.len() == 2 && results[0]["isError"] != true, "{agent} {args:?} {results:?}");
        assert!(of(&events, "warning").is_empty(), "{agent} {args:?}: {}", end.out);
    }
}

#[test]
fn a_failure_has_the_same_name_whoever_tells_it() {
    for (status, code) in [(401, "AUTH"), (429, "RATE_LIMIT"), (503, "OVERLOADED"), (500, "PROVIDER")] {
        let stage = Stage::with(&format!(
            "[[turns]]\nsteps = [{{ say = \"Well.\" }}, {{ fail = {{ status = {status}, message = \"It is so.\" }} }}]\n"
        ));
        for (agent, args) in forms() {
            let end = stage.run(agent, args);
            assert_eq!(end.code, Some(1), "{agent} {args:?}: {}", end.out);
            let events = events(&end);
            let error = of(&events, "error")[0];
            assert_eq!(error["code"], code, "{agent} {args:?} {error}");
            assert!(error["message"].as_str().unwrap().contains("It is so."), "{agent} {args:?} {error}");
        }
    }
}

const TALK: &str = r#"{"turns": [
    {"steps": [{"run": {"command": "touch a", "ask": true, "output": "made"}}, {"say": "One."}]},
    {"steps": [{"run": {"command": "touch b", "ask": true}}, {"say": "Two."}]},
    {"steps": [{"say": "Waiting."}, {"waitMs": 600000}, {"say": "Never."}]},
    {"steps": [{"say": "And {prompt}"}]}
]}"#;

#[test]
fn a_story_is_a_session_of_each_agent_with_requests_and_an_interrupt() {
    for agent in AGENTS {
        let stage = Stage::with(TALK);
        let script = stage.file("story");
        let mut session = stage.command("session", agent, &script, &["--permission", "ask"]);
        let mut session = Running::start(session.stdin(Stdio::piped()));
        for (turn, decision) in [("one", "allow"), ("two", "deny")] {
            session.say(&format!(r#"{{"type":"send","text":"go","id":"{turn}"}}"#));
            let request = session.next_event("permission_request");
            assert!(request["input"]["command"].as_str().unwrap().starts_with("touch"), "{agent}: {request}");
            session.say(
                &serde_json::json!({"type": "answer", "requestId": request["requestId"], "decision": decision})
                    .to_string(),
            );
            let result = session.next_event("tool_result");
            assert_eq!(result["isError"] == true, decision == "deny", "{agent}: {result}");
            assert_eq!(session.next_event("done")["result"]["isError"], false, "{agent}");
        }
        session.say(r#"{"type":"send","text":"wait"}"#);
        session.next_event("text");
        session.say(r#"{"type":"interrupt"}"#);
        assert_eq!(session.next_event("done")["result"]["aborted"], true, "{agent}");
        session.say(r#"{"type":"send","text":"on"}"#);
        assert_eq!(session.next_event("done")["result"]["text"], "And on", "{agent}");
        session.say(r#"{"type":"close"}"#);
        let end = session.end();
        assert_eq!(end.code, Some(0), "{agent}: {}", end.err);
        assert!(!end.out.contains("SESSION_REOPENED"), "{agent}: {}", end.out);
    }
}

#[tokio::test]
async fn what_is_said_within_a_turn_is_heard_in_it() {
    let stage = Stage::with("[[turns]]\nsteps = [{ say = \"Waiting.\" }, { waitMs = 600000 }]\n");
    for agent in ["claude", "codex", "opencode"] {
        let mut frame = RunRequest::default();
        frame.cli_path = Some(CLI.into());
        frame.cwd = Some(stage.folder.path().to_owned());
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        frame.env = [
            variable("FAKE_CLI", FAKE),
            variable("TEAMSTER", env!("CARGO_BIN_EXE_teamster")),
            variable("AGENT", agent),
            variable("SCRIPT", stage.file("story").to_str().unwrap()),
            variable("HOME", stage.folder.path().to_str().unwrap()),
        ]
        .into();
        let session = Runtime::new().open(agent, frame).unwrap();
        let talk = async {
            let mut turn = session.send("go").unwrap();
            while !matches!(turn.next().await.unwrap(), Event::Text(_)) {}
            assert!(matches!(session.send_now("more").await.unwrap(), Sent::Joined), "{agent}");
            turn.control().interrupt();
            while let Some(event) = turn.next().await {
                assert!(!matches!(&event, Event::Done(done) if !done.result.aborted), "{agent}: {event:?}");
            }
        };
        tokio::time::timeout(BOUND, talk).await.unwrap_or_else(|_| panic!("{agent}: nothing comes"));
        session.close().await;
    }
}

/// Without what differs from run to run.
fn comparable(events: Vec<Value>) -> Vec<Value> {
    let comparable = |mut event: Value| {
        if event["type"] == "done" {
            event["result"]["durationMs"] = 0.into();
        }
        for name in ["runId", "time"] {
            event.as_object_mut().unwrap().remove(name);
        }
        event
    };
    events.into_iter().map(comparable).collect()
}

#[test]
fn a_recorded_server_is_a_server_again_and_the_run_is_the_same() {
    let stage = Stage::with(LOOK);
    let recording = stage.file("recording");
    let then = stage.run("opencode", &["--record", recording.to_str().unwrap()]);
    assert_eq!(then.code, Some(0), "{}", then.err);
    let said = std::fs::read_to_string(&recording).unwrap();
    assert!(said.contains("\"kind\":\"server_event\"") && said.contains("\"kind\":\"reply\""), "{said}");
    let now = ended(stage.command("run", "opencode", &recording, &["--output", "ndjson", "hi"]));
    assert_eq!(now.code, Some(0), "{}", now.err);
    assert_eq!(comparable(events(&now)), comparable(events(&then)));
}

#[test]
fn what_a_form_cannot_tell_is_named_before_anything_is_played() {
    let stage = Stage::with("[[turns]]\nsteps = [{ tool = { name = \"Read\" } }]\n");
    for (agent, args, said) in [
        (Some("codex"), &["exec"][..], "turn 1: codex tells of no tool \"Read\""),
        (Some("codex"), &[], "exec or app-server"),
        (Some("nobody"), &[], "no agent \"nobody\""),
        (None, &[], "--agent is needed"),
    ] {
        let mut fake = Command::new(env!("CARGO_BIN_EXE_teamster"));
        fake.env_clear().args(["fake", "--script", stage.file("story").to_str().unwrap()]).stdin(Stdio::null());
        let agent = agent.map(|agent| ["--agent", agent]).into_iter().flatten();
        fake.args(agent).arg("--").args(args);
        let end = ended(fake);
        assert_eq!(end.code, Some(2), "{}", end.err);
        assert!(end.err.contains(said), "{}", end.err);
    }
}
