//! Scenarios, played as each of the four CLIs to the command that drives it.

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

/// A folder with a scenario, in which an agent works.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn with(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("scenario"), scenario).unwrap();
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
        ended(self.command("run", agent, &self.file("scenario"), &[args, &["--output", "ndjson", "hi"]].concat()))
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
    live.into_iter().chain(AGENTS.map(|agent| (agent, &["--mode", "exec"][..])))
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
fn a_scenario_is_a_run_of_each_agent_in_each_of_its_forms() {
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
fn a_scenario_is_a_session_of_each_agent_with_requests_and_an_interrupt() {
    for agent in AGENTS {
        let stage = Stage::with(TALK);
        let script = stage.file("scenario");
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
            variable("SCRIPT", stage.file("scenario").to_str().unwrap()),
            variable("HOME", stage.folder.path().to_str().unwrap()),
        ]
        .into();
        let session = Runtime::new().open(agent, frame).unwrap();
        let talk = async {
            let mut turn = session.send("go").unwrap();
            while !matches!(turn.next().await.unwrap(), Event::Text(_)) {}
            assert!(matches!(session.send_now("more").await.unwrap(), Sent::Steered), "{agent}");
            turn.control().interrupt();
            while let Some(event) = turn.next().await {
                assert!(!matches!(&event, Event::Done(done) if !done.result.aborted), "{agent}: {event:?}");
            }
        };
        tokio::time::timeout(BOUND, talk).await.unwrap_or_else(|_| panic!("{agent}: nothing comes"));
        session.close().await;
    }
}

/// What the fake CLI writes and how it exits, when it is started with these arguments and this input.
fn played(stage: &Stage, agent: &str, args: &[&str], input: &str) -> Ended {
    let mut fake = Command::new(env!("CARGO_BIN_EXE_teamster"));
    fake.env_clear().args(["fake", "--agent", agent, "--script", stage.file("scenario").to_str().unwrap(), "--"]);
    let prompt = stage.file("prompt");
    std::fs::write(&prompt, input).unwrap();
    ended_with_stdin(fake.args(args), std::fs::File::open(prompt).unwrap())
}

fn ended_with_stdin(command: &mut Command, stdin: std::fs::File) -> Ended {
    let output = command.stdin(stdin).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn each_cli_says_its_version_as_the_real_one_does_and_the_doctor_reads_it() {
    let stage = Stage::with(LOOK);
    let recording = stage.file("recording");
    assert_eq!(stage.run("claude", &["--record", recording.to_str().unwrap()]).code, Some(0));
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
        let end = played(&stage, agent, &["--version"], "");
        assert_eq!((end.code, end.out), (Some(0), format!("{before}{version}{after}\n")), "{agent}");
        let script = if agent == "claude" { recording.clone() } else { stage.file("scenario") };
        let end = ended(stage.command("doctor", agent, &script, &["--json"]));
        assert_eq!(end.code, Some(0), "{agent}: {} {}", end.out, end.err);
        let report: Value = serde_json::from_str(&end.out).unwrap();
        let found = report["agents"].as_array().unwrap().iter().find(|found| found["agent"] == agent).unwrap();
        assert_eq!((&found["version"], &found["versionStatus"]), (&version.into(), &"tested".into()), "{found}");
    }
}

#[test]
fn each_session_has_an_id_of_its_own_and_one_that_is_resumed_keeps_its_id() {
    let stage = Stage::with(LOOK);
    let id = |end: &Ended| events(end).last().unwrap()["result"]["sessionId"].as_str().unwrap().to_owned();
    for (agent, args) in forms() {
        let first = id(&stage.run(agent, args));
        assert_ne!(first, id(&stage.run(agent, args)), "{agent} {args:?}");
        let resumed = stage.run(agent, &[args, &["--resume", &first]].concat());
        assert_eq!(id(&resumed), first, "{agent} {args:?}: {}", resumed.out);
        let is_uuid = first.len() == 36 && first.bytes().filter(|byte| *byte == b'-').count() == 4;
        assert!(is_uuid || agent == "opencode" && first.starts_with("ses_") && first.len() == 30, "{agent}: {first}");
    }
}

#[test]
fn what_a_run_used_is_the_sum_of_its_calls_of_the_model() {
    let stage = Stage::with(LOOK);
    for (agent, args) in forms() {
        let end = stage.run(agent, args);
        let result = events(&end).last().unwrap()["result"].clone();
        // OpenCode's model says something and calls a tool in one message.
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
fn the_figures_of_a_process_add_up_over_its_turns() {
    let stage =
        Stage::with("[[turns]]\nsteps = [{ say = \"One\" }]\n[[turns]]\nsteps = [{ say = \"A\" }, { say = \"B\" }]\n");
    let mut fake = Command::new(env!("CARGO_BIN_EXE_teamster"));
    fake.env_clear().args([
        "fake",
        "--agent",
        "claude",
        "--script",
        stage.file("scenario").to_str().unwrap(),
        "--",
        "-p",
    ]);
    fake.args(["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    let mut fake = Running::start(fake.stdin(Stdio::piped()));
    let results = [1, 2].map(|_| {
        fake.say(r#"{"type":"user","message":{"role":"user","content":"hi"}}"#);
        fake.next_event("result")
    });
    fake.type_in(b"");
    let end = fake.end();
    assert_eq!(end.code, Some(0), "{}", end.err);
    assert!(!end.out.contains("stream_event"), "they were not asked for: {}", end.out);
    let tokens = |at: usize| {
        (&results[at]["usage"]["output_tokens"], &results[at]["modelUsage"]["claude-opus-4-8"]["outputTokens"])
    };
    assert_eq!(tokens(0), (&40.into(), &40.into()));
    assert_eq!(tokens(1), (&80.into(), &120.into()));
    assert_eq!((&results[0]["total_cost_usd"], &results[1]["total_cost_usd"]), (&0.00355.into(), &0.01065.into()));
}

#[test]
fn claudes_one_shot_forms_answer_as_text_as_one_document_and_line_by_line() {
    let stage = Stage::with(
        "[[turns]]\nsteps = [{ run = { command = \"ls\", ask = true } }, { say = \"You said: {prompt}\" }]\n",
    );
    for args in [&["-p"][..], &["--print", "--output-format", "text"], &["-p", "--output-format=text"]] {
        let end = played(&stage, "claude", args, "hi");
        assert_eq!((end.code, end.out.as_str()), (Some(0), "You said: hi\n"), "{args:?} {}", end.err);
    }
    assert_eq!(played(&stage, "claude", &["-p", "--model", "opus", "by argument"], "").out, "You said: by argument\n");
    let end = played(&stage, "claude", &["-p", "--output-format", "json"], "hi");
    let document: Value = serde_json::from_str(&end.out).unwrap();
    assert_eq!((&document["type"], &document["result"]), (&"result".into(), &"You said: hi".into()));
    // The one-shot form cannot ask for permission.
    assert_eq!(document["permission_denials"][0]["tool_name"], "Bash");
    let end = played(&stage, "claude", &["-p", "--output-format", "json", "--verbose"], "hi");
    let document: Vec<Value> = serde_json::from_str(&end.out).unwrap();
    assert_eq!((&document[0]["type"], &document.last().unwrap()["type"]), (&"system".into(), &"result".into()));
    let end = played(&stage, "claude", &["-p", "--output-format", "stream-json", "--verbose"], "hi");
    assert_eq!(events(&end).last().unwrap()["result"], "You said: hi");
    assert!(!end.out.contains("stream_event") && !end.out.contains("control_request"), "{}", end.out);
    for (args, input, reason) in [
        (&["-p", "--output-format", "stream-json"][..], "hi", "requires --verbose"),
        (&["-p"], "", "Input must be provided"),
    ] {
        let end = played(&stage, "claude", args, input);
        assert_eq!((end.code, end.out.as_str()), (Some(1), ""), "{args:?}");
        assert!(end.err.contains(reason), "{}", end.err);
    }
}

#[test]
fn geminis_one_shot_forms_answer_as_text_and_as_one_document() {
    let stage = Stage::with("[[turns]]\nsteps = [{ think = \"Hm.\" }, { say = \"You said: {prompt}\" }]\n");
    assert_eq!(played(&stage, "gemini", &["--prompt", "hi"], "").out, "You said: hi\n");
    let end = played(&stage, "gemini", &["-o", "json"], "hi");
    let document: Value = serde_json::from_str(&end.out).unwrap();
    assert_eq!(document["response"], "You said: hi");
    assert_eq!(document["stats"]["models"]["gemini-2.5-flash"]["tokens"]["candidates"], 80);
}

#[test]
fn a_scenario_is_one_document_where_a_run_asks_for_that() {
    let stage = Stage::with(LOOK);
    for agent in ["claude", "gemini"] {
        let end = stage.run(agent, &["--batch"]);
        assert_eq!(end.code, Some(0), "{agent}: {} {}", end.err, end.out);
        let events = events(&end);
        let result = &events.last().unwrap()["result"];
        assert!(result["finalText"].as_str().unwrap().ends_with("You said: hi"), "{agent}: {result}");
        assert_eq!(result["usage"]["outputTokens"], 200, "{agent}: {result}");
        assert!(of(&events, "warning").is_empty(), "{agent}: {}", end.out);
    }
    let stage = Stage::with("[[turns]]\nsteps = [{ fail = { status = 401, message = \"It is so.\" } }]\n");
    for agent in ["claude", "gemini"] {
        let end = stage.run(agent, &["--batch"]);
        assert_eq!(of(&events(&end), "error")[0]["code"], "AUTH", "{agent}: {}", end.out);
    }
}

#[test]
fn a_session_that_has_used_up_its_budget_takes_no_further_turn() {
    let stage = Stage::with("[[turns]]\nsteps = [{ say = \"Hi\" }]\n");
    let tokens = ["claude", "codex", "opencode"].map(|agent| (agent, ["--max-session-tokens", "100"]));
    let cost = ["claude", "opencode"].map(|agent| (agent, ["--max-session-budget", "0.0005"]));
    for (agent, limit) in tokens.into_iter().chain(cost) {
        let mut session = stage.command("session", agent, &stage.file("scenario"), &limit);
        let mut session = Running::start(session.stdin(Stdio::piped()));
        session.say(r#"{"type":"send","text":"one"}"#);
        session.next_event("done");
        session.say(r#"{"type":"send","text":"two"}"#);
        let refused = session.next_event("error");
        assert_eq!(refused["code"], "BUDGET", "{agent} {limit:?}: {refused}");
        assert!(refused["message"].as_str().unwrap().contains("nothing was sent"), "{agent} {limit:?}: {refused}");
        session.say(r#"{"type":"close"}"#);
        session.end();
    }
}

#[test]
fn a_turn_of_a_session_that_uses_up_its_tokens_is_stopped_and_the_next_one_is_not() {
    let stage = Stage::with("[[turns]]\nsteps = [{ say = \"Hi\" }, { waitMs = 600000 }]\n[[turns]]\nsteps = []\n");
    for agent in ["claude", "codex"] {
        let limit = ["--max-tokens", "100"];
        let mut session = stage.command("session", agent, &stage.file("scenario"), &limit);
        let mut session = Running::start(session.stdin(Stdio::piped()));
        session.say(r#"{"type":"send","text":"one"}"#);
        let done = session.next_event("done");
        assert_eq!(
            (&done["result"]["errorCode"], &done["result"]["aborted"]),
            (&"BUDGET".into(), &false.into()),
            "{agent}"
        );
        session.say(r#"{"type":"send","text":"two"}"#);
        assert_ne!(session.next_event("done")["result"]["errorCode"], "BUDGET", "{agent}");
        session.say(r#"{"type":"close"}"#);
        session.end();
    }
}

#[test]
fn a_budget_of_what_an_agent_does_not_tell_is_refused_before_anything_is_sent() {
    let stage = Stage::with(LOOK);
    for (agent, args) in [
        ("codex", &["--max-budget", "1"][..]),
        ("codex", &["--max-session-budget", "1"]),
        ("codex", &["--max-tokens", "100", "--mode", "exec"]),
        ("gemini", &["--max-budget", "1"]),
        ("gemini", &["--max-tokens", "100"]),
        ("gemini", &["--max-session-tokens", "100"]),
        ("claude", &["--max-tokens", "100", "--batch"]),
    ] {
        let end = stage.run(agent, args);
        assert_eq!((end.code, end.out.as_str()), (Some(2), ""), "{agent} {args:?}: {}", end.err);
        assert!(end.err.contains(args[0]), "{agent} {args:?}: {}", end.err);
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
fn an_unsupported_scenario_or_argument_is_an_error_before_anything_is_played() {
    let stage = Stage::with("[[turns]]\nsteps = [{ tool = { name = \"Read\" } }]\n");
    for (agent, args, reason) in [
        (Some("codex"), &["exec"][..], "turn 1: codex has no tool \"Read\""),
        (Some("codex"), &[], "exec or app-server"),
        (Some("unknown"), &[], "agent \"unknown\" cannot be imitated"),
        (None, &[], "--agent is needed"),
    ] {
        let mut fake = Command::new(env!("CARGO_BIN_EXE_teamster"));
        fake.env_clear().args(["fake", "--script", stage.file("scenario").to_str().unwrap()]).stdin(Stdio::null());
        let agent = agent.map(|agent| ["--agent", agent]).into_iter().flatten();
        fake.args(agent).arg("--").args(args);
        let end = ended(fake);
        assert_eq!(end.code, Some(2), "{}", end.err);
        assert!(end.err.contains(reason), "{}", end.err);
    }
}
