//! Replays recorded runs without a process, as the driver does.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use teamster::RunRequest;
use teamster::agent::Agent;
use teamster::agent::acp::Acp;
use teamster::agent::claude::Claude;
use teamster::agent::codex::Codex;
use teamster::agent::gemini::Gemini;
use teamster::agent::opencode::OpenCode;
use teamster::agent::protocol::{Action, ExitReport, Input, Protocol};
use teamster::agent::transcript::{End, Transcript};
use teamster::event::Event;
use teamster::request::{AgentInterface, OutputMode, PermissionMode};

/// The agents with recorded runs.
pub(super) const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "acp"];

/// Returns the names of an agent's recorded runs.
pub(super) fn names(agent: &str) -> Vec<String> {
    let entries = fs::read_dir(folder(agent)).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn folder(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../teamster-agents/tests/captures").join(agent)
}

/// Returns the events of a recorded run; `None` if its process did not start.
pub(super) fn recorded(agent: &str, name: &str) -> Option<Vec<Event>> {
    let folder = folder(agent).join(name);
    let run: Value = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
    let argv: Vec<&str> = run["argv"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()).collect();
    let exit = run["exit"].as_object()?;
    let code = exit["code"].as_i64().map(|code| i32::try_from(code).unwrap());
    let signal = exit["signal"].as_i64().map(|signal| match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        9 => "SIGKILL",
        15 => "SIGTERM",
        other => panic!("{agent} {name}: signal {other}"),
    });
    let stdout = fs::read(folder.join("stdout.ndjson")).unwrap_or_default();
    let stderr = String::from_utf8_lossy(&fs::read(folder.join("stderr.txt")).unwrap_or_default()).into_owned();
    let mut replay = Replay::of(agent, &argv);
    stderr.lines().for_each(|line| replay.feed(Input::Diagnostic(line.as_bytes())));
    for line in
        stdout.strip_suffix(b"\n").unwrap_or(&stdout).split(|byte| *byte == b'\n').filter(|_| !stdout.is_empty())
    {
        replay.feed(Input::Line(line.strip_suffix(b"\r").unwrap_or(line)));
    }
    let report = || Some(ExitReport { code, signal, stderr: &stderr });
    if let Some(exit) = report() {
        replay.feed(Input::Exited(exit));
    }
    replay.transcript.end(&End { exit: report(), duration_ms: 2_300, ..End::default() }, &mut replay.events);
    Some(replay.events)
}

struct Replay {
    protocol: Box<dyn Protocol>,
    transcript: Transcript,
    events: Vec<Event>,
}

impl Replay {
    /// Starts a run whose CLI was recorded with these arguments.
    fn of(agent: &str, argv: &[&str]) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| argv.contains(word));
        let mut request = RunRequest::new("recorded");
        if argv.windows(2).any(|pair| matches!(pair, ["--output-format" | "-o", "json"])) {
            request.output = OutputMode::Batch;
        }
        (request.cwd, request.model) = (Some("/home/dev/project".into()), Some("gpt-5.5".to_owned()));
        if agent == "opencode" || (agent == "codex" && !has(&["app-server"])) {
            request.interface = AgentInterface::Exec;
        }
        let agent: &dyn Agent = match agent {
            "claude" => &Claude,
            "codex" => &Codex,
            "gemini" => &Gemini,
            "opencode" => &OpenCode,
            _ => {
                (request.cli_path, request.permissions.mode) = (Some("agent".into()), PermissionMode::Full);
                request.model = None;
                &Acp::any()
            }
        };
        let protocol = agent.plan(&request).unwrap().protocol;
        let mut replay = Self { protocol, transcript: Transcript::new(), events: Vec::new() };
        replay.feed(Input::Started);
        replay
    }

    fn feed(&mut self, input: Input<'_>) {
        let mut actions = Vec::new();
        self.protocol.handle(input, &mut actions);
        for action in actions {
            match action {
                Action::Emit(event) => self.transcript.push(event, &mut self.events),
                Action::Outcome(outcome) => self.transcript.set_outcome(*outcome),
                _ => {}
            }
        }
    }
}
