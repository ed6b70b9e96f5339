//! `teamster fake`: scenarios, imitated as each of the four CLIs.

mod backend;
mod limits;
mod output;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use teamster::{Event, RunRequest, Runtime, Sent};
use tempfile::TempDir;

use crate::command::{BOUND, Ended, Running, command, ended};

/// The agent's CLI: a shell that runs the script in the variable `FAKE_CLI`.
const CLI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-cli.sh");
const FAKE: &str = "exec \"$TEAMSTER\" fake --agent \"$AGENT\" --script \"$SCRIPT\" -- \"$@\"";

const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// A directory with a scenario, which is also the working directory.
struct ScenarioDir {
    folder: TempDir,
}

impl ScenarioDir {
    fn with(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("scenario"), scenario).unwrap();
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the command with `teamster fake` as the agent's CLI.
    fn command(&self, name: &str, agent: &str, script: &Path, args: &[&str]) -> Command {
        let mut command = command(name, FAKE, &["--agent", agent]);
        command.args(args).env("TEAMSTER", env!("CARGO_BIN_EXE_teamster")).env("AGENT", agent).env("SCRIPT", script);
        command.env("HOME", self.folder.path()).env("TMPDIR", self.folder.path()).current_dir(self.folder.path());
        command
    }

    fn run(&self, agent: &str, args: &[&str]) -> Ended {
        ended(self.command("run", agent, &self.file("scenario"), &[args, &["--output", "ndjson", "hi"]].concat()))
    }
}

fn events(end: &Ended) -> Vec<Value> {
    end.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Returns each agent with the options of each of its interfaces.
fn interfaces() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let live = AGENTS.map(|agent| (agent, &[][..]));
    live.into_iter().chain(AGENTS.map(|agent| (agent, &["--mode", "exec"][..])))
}

const FILES: &str = r#"
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
fn a_scenario_is_a_run_of_each_agent_in_each_of_its_interfaces() {
    let scenario = ScenarioDir::with(FILES);
    for (agent, args) in interfaces() {
        let end = scenario.run(agent, args);
        assert_eq!(end.code, Some(0), "{agent} {args:?}: {}\n{}", end.err, end.out);
        let events = events(&end);
        let result = &events.last().unwrap()["result"];
        assert_eq!(result["finalText"], "You said: hi", "{agent} {args:?}");
        assert!(result["text"].as_str().unwrap().contains("Let me look."), "{agent} {args:?}");
        assert!(result["sessionId"].is_string());
        // A server does not exit by itself. Its end by a signal is not reported.
        let code = if (agent, args.is_empty()) == ("opencode", true) { Value::Null } else { 0.into() };
        assert_eq!((&result["exitCode"], &result["signal"]), (&code, &Value::Null), "{agent} {args:?}");
        // A run of Gemini CLI is one-shot in both interfaces.
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
fn a_failure_has_the_same_code_on_every_agent_and_interface() {
    for (status, code) in [(401, "AUTH"), (429, "RATE_LIMIT"), (503, "OVERLOADED"), (500, "PROVIDER")] {
        let scenario = ScenarioDir::with(&format!(
            "[[turns]]\nsteps = [{{ say = \"Well.\" }}, {{ fail = {{ status = {status}, message = \"It is so.\" }} }}]\n"
        ));
        for (agent, args) in interfaces() {
            let end = scenario.run(agent, args);
            assert_eq!(end.code, Some(1), "{agent} {args:?}: {}", end.out);
            let events = events(&end);
            let error = of(&events, "error")[0];
            assert_eq!(error["code"], code, "{agent} {args:?} {error}");
            assert!(error["message"].as_str().unwrap().contains("It is so."), "{agent} {args:?} {error}");
        }
    }
}

const CONVERSATION: &str = r#"{"turns": [
    {"steps": [{"run": {"command": "touch a", "ask": true, "output": "made"}}, {"say": "One."}]},
    {"steps": [{"run": {"command": "touch b", "ask": true}}, {"say": "Two."}]},
    {"steps": [{"say": "Waiting."}, {"waitMs": 600000}, {"say": "Never."}]},
    {"steps": [{"say": "And {prompt}"}]}
]}"#;

#[test]
fn a_scenario_is_a_session_of_each_agent_with_requests_and_an_interrupt() {
    for agent in AGENTS {
        let scenario = ScenarioDir::with(CONVERSATION);
        let script = scenario.file("scenario");
        let mut session = scenario.command("session", agent, &script, &["--permission", "ask"]);
        let mut session = Running::start(session.stdin(Stdio::piped()));
        for (turn, decision) in [("one", "allow"), ("two", "deny")] {
            session.write_line(&format!(r#"{{"type":"send","text":"go","id":"{turn}"}}"#));
            let request = session.next_event("permission_request");
            assert!(request["input"]["command"].as_str().unwrap().starts_with("touch"), "{agent}: {request}");
            session.write_line(
                &serde_json::json!({"type": "answer", "requestId": request["requestId"], "decision": decision})
                    .to_string(),
            );
            let result = session.next_event("tool_result");
            assert_eq!(result["isError"] == true, decision == "deny", "{agent}: {result}");
            assert_eq!(session.next_event("done")["result"]["isError"], false, "{agent}");
        }
        session.write_line(r#"{"type":"send","text":"wait"}"#);
        session.next_event("text");
        session.write_line(r#"{"type":"interrupt"}"#);
        assert_eq!(session.next_event("done")["result"]["aborted"], true, "{agent}");
        session.write_line(r#"{"type":"send","text":"on"}"#);
        assert_eq!(session.next_event("done")["result"]["text"], "And on", "{agent}");
        session.write_line(r#"{"type":"close"}"#);
        let end = session.end();
        assert_eq!(end.code, Some(0), "{agent}: {}", end.err);
        assert!(!end.out.contains("SESSION_REOPENED"), "{agent}: {}", end.out);
    }
}

#[tokio::test]
async fn a_prompt_that_is_sent_during_a_turn_joins_it() {
    let scenario = ScenarioDir::with("[[turns]]\nsteps = [{ say = \"Waiting.\" }, { waitMs = 600000 }]\n");
    for agent in ["claude", "codex", "opencode"] {
        let mut request = RunRequest::default();
        request.cli_path = Some(CLI.into());
        request.cwd = Some(scenario.folder.path().to_owned());
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        request.env = [
            variable("FAKE_CLI", FAKE),
            variable("TEAMSTER", env!("CARGO_BIN_EXE_teamster")),
            variable("AGENT", agent),
            variable("SCRIPT", scenario.file("scenario").to_str().unwrap()),
            variable("HOME", scenario.folder.path().to_str().unwrap()),
        ]
        .into();
        let session = Runtime::new().open(agent, request).unwrap();
        let conversation = async {
            let mut turn = session.send("go").unwrap();
            while !matches!(turn.next().await.unwrap(), Event::Text(_)) {}
            assert!(matches!(session.send_now("more").await.unwrap(), Sent::Steered), "{agent}");
            turn.control().interrupt();
            while let Some(event) = turn.next().await {
                assert!(!matches!(&event, Event::Done(done) if !done.result.aborted), "{agent}: {event:?}");
            }
        };
        tokio::time::timeout(BOUND, conversation)
            .await
            .unwrap_or_else(|_| panic!("{agent}: no event within the time limit"));
        session.close().await;
    }
}

/// Runs the fake CLI with these arguments and this input.
fn run_fake(scenario: &ScenarioDir, agent: &str, args: &[&str], input: &str) -> Ended {
    let mut fake = Command::new(env!("CARGO_BIN_EXE_teamster"));
    fake.env_clear().args(["fake", "--agent", agent, "--script", scenario.file("scenario").to_str().unwrap(), "--"]);
    let prompt = scenario.file("prompt");
    std::fs::write(&prompt, input).unwrap();
    ended_with_stdin(fake.args(args), std::fs::File::open(prompt).unwrap())
}

fn ended_with_stdin(command: &mut Command, stdin: std::fs::File) -> Ended {
    Running::start(command.stdin(stdin)).end()
}

#[test]
fn each_cli_prints_its_version_like_the_real_one_and_doctor_reads_it() {
    let scenario = ScenarioDir::with(FILES);
    let recording = scenario.file("recording");
    assert_eq!(scenario.run("claude", &["--record", recording.to_str().unwrap()]).code, Some(0));
    let packages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/package.json");
    let packages: Value = serde_json::from_str(&std::fs::read_to_string(packages).unwrap()).unwrap();
    let pinned = |package: &str| packages["dependencies"][package].as_str().unwrap().to_owned();
    for (agent, package, before, after) in [
        ("claude", "@anthropic-ai/claude-code", "", " (Claude Code)"),
        ("codex", "@openai/codex", "codex-cli ", ""),
        ("gemini", "@google/gemini-cli", "", ""),
        ("opencode", "opencode-ai", "", ""),
    ] {
        let version = pinned(package);
        let end = run_fake(&scenario, agent, &["--version"], "");
        assert_eq!((end.code, end.out), (Some(0), format!("{before}{version}{after}\n")), "{agent}");
        let script = if agent == "claude" { recording.clone() } else { scenario.file("scenario") };
        let end = ended(scenario.command("doctor", agent, &script, &["--json"]));
        assert_eq!(end.code, Some(0), "{agent}: {} {}", end.out, end.err);
        let report: Value = serde_json::from_str(&end.out).unwrap();
        let found = report["agents"].as_array().unwrap().iter().find(|found| found["agent"] == agent).unwrap();
        assert_eq!((&found["version"], &found["versionStatus"]), (&version.into(), &"tested".into()), "{found}");
    }
}

#[test]
fn each_session_has_its_own_id_and_a_resumed_one_keeps_it() {
    let scenario = ScenarioDir::with(FILES);
    let id = |end: &Ended| events(end).last().unwrap()["result"]["sessionId"].as_str().unwrap().to_owned();
    for (agent, args) in interfaces() {
        let first = id(&scenario.run(agent, args));
        assert_ne!(first, id(&scenario.run(agent, args)), "{agent} {args:?}");
        let resumed = scenario.run(agent, &[args, &["--resume", &first]].concat());
        assert_eq!(id(&resumed), first, "{agent} {args:?}: {}", resumed.out);
        let is_uuid = first.len() == 36 && first.bytes().filter(|byte| *byte == b'-').count() == 4;
        assert!(is_uuid || agent == "opencode" && first.starts_with("ses_") && first.len() == 30, "{agent}: {first}");
    }
}

#[test]
fn a_resumed_session_of_each_agent_gets_its_answers() {
    let id = |end: &Ended| events(end).last().unwrap()["result"]["sessionId"].as_str().unwrap().to_owned();
    for agent in AGENTS {
        let scenario = ScenarioDir::with(
            "[[turns]]\nsteps = [{ run = { command = \"ls\", output = \"a\" } }, { say = \"Hello.\" }]\n",
        );
        let first = id(&scenario.run(agent, &[]));
        let script = scenario.file("scenario");
        let mut session = scenario.command("session", agent, &script, &["--permission", "full", "--resume", &first]);
        let mut session = Running::start(session.stdin(Stdio::piped()));
        session.write_line(r#"{"type":"send","text":"go"}"#);
        assert!(!(session.next_event("tool_result")["isError"] == true), "{agent}");
        let done = session.next_event("done");
        assert_eq!(
            (&done["result"]["text"], &done["result"]["sessionId"]),
            (&"Hello.".into(), &first.into()),
            "{agent}"
        );
        session.write_line(r#"{"type":"close"}"#);
        assert_eq!(session.end().code, Some(0), "{agent}");
    }
}

#[test]
fn the_usage_of_a_run_is_the_sum_of_its_model_calls() {
    let scenario = ScenarioDir::with(FILES);
    for (agent, args) in interfaces() {
        let end = scenario.run(agent, args);
        let result = events(&end).last().unwrap()["result"].clone();
        // OpenCode's model writes text and calls a tool in one message.
        let calls = if agent == "opencode" { 3 } else { 5 };
        let usage = &result["usage"];
        assert_eq!(
            (&usage["inputTokens"], &usage["outputTokens"]),
            (&(25 * calls).into(), &(40 * calls).into()),
            "{agent} {args:?}"
        );
        let cost = result["totalCostUsd"].as_f64();
        let expected = match agent {
            "claude" => Some(0.01775),
            "opencode" => Some(0.003),
            _ => None,
        };
        assert_eq!(
            cost.map(|cost| (cost * 1e6).round()),
            expected.map(|cost: f64| (cost * 1e6).round()),
            "{agent} {args:?}"
        );
    }
}

#[test]
fn the_totals_of_a_process_include_all_turns() {
    let scenario = ScenarioDir::with(
        "[[turns]]\nsteps = [{ say = \"One\" }]\n[[turns]]\nsteps = [{ say = \"A\" }, { say = \"B\" }]\n",
    );
    let mut fake = Command::new(env!("CARGO_BIN_EXE_teamster"));
    fake.env_clear().args([
        "fake",
        "--agent",
        "claude",
        "--script",
        scenario.file("scenario").to_str().unwrap(),
        "--",
        "-p",
    ]);
    fake.args(["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    let mut fake = Running::start(fake.stdin(Stdio::piped()));
    let results = [1, 2].map(|_| {
        fake.write_line(r#"{"type":"user","message":{"role":"user","content":"hi"}}"#);
        fake.next_event("result")
    });
    fake.type_in(b"");
    let end = fake.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    assert!(!end.out.contains("stream_event"), "not requested: {}", end.out);
    let tokens = |at: usize| {
        (&results[at]["usage"]["output_tokens"], &results[at]["modelUsage"]["claude-opus-4-8"]["outputTokens"])
    };
    assert_eq!(tokens(0), (&40.into(), &40.into()));
    assert_eq!(tokens(1), (&80.into(), &120.into()));
    assert_eq!((&results[0]["total_cost_usd"], &results[1]["total_cost_usd"]), (&0.00355.into(), &0.01065.into()));
}

/// Removes the fields that differ from run to run.
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
fn a_recorded_server_can_be_replayed_and_the_run_is_the_same() {
    let scenario = ScenarioDir::with(FILES);
    let recording = scenario.file("recording");
    let then = scenario.run("opencode", &["--record", recording.to_str().unwrap()]);
    assert_eq!(then.code, Some(0), "{}", then.err);
    let recorded = std::fs::read_to_string(&recording).unwrap();
    assert!(recorded.contains("\"kind\":\"server_event\"") && recorded.contains("\"kind\":\"reply\""), "{recorded}");
    let now = ended(scenario.command("run", "opencode", &recording, &["--output", "ndjson", "hi"]));
    assert_eq!(now.code, Some(0), "{}", now.err);
    assert_eq!(comparable(events(&now)), comparable(events(&then)));
}

#[test]
fn an_unsupported_scenario_or_argument_is_an_error_before_any_output() {
    let scenario = ScenarioDir::with("[[turns]]\nsteps = [{ tool = { name = \"Read\" } }]\n");
    for (agent, args, reason) in [
        (Some("codex"), &["exec"][..], "turn 1: codex has no tool \"Read\""),
        (Some("codex"), &[], "exec or app-server"),
        (Some("unknown"), &[], "agent \"unknown\" cannot be imitated"),
        (None, &[], "--agent is needed"),
    ] {
        let mut fake = Command::new(env!("CARGO_BIN_EXE_teamster"));
        fake.env_clear().args(["fake", "--script", scenario.file("scenario").to_str().unwrap()]).stdin(Stdio::null());
        let agent = agent.map(|agent| ["--agent", agent]).into_iter().flatten();
        fake.args(agent).arg("--").args(args);
        let end = ended(fake);
        assert_eq!(end.code, Some(2), "{}", end.err);
        assert!(end.err.contains(reason), "{}", end.err);
    }
}
