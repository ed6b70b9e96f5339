//! Gemini CLI's one-shot forms: a text, a document, or lines (`--output-format`).

use std::io::{self, Write as _};
use std::time::Instant;

use serde_json::{Value, json};

use super::calls::{self, ModelCalls};
use super::perform::{Asked, Call, End, Heard, Once, Outcome, Tongue, pieces, put, write};
use super::{Arguments, StoryError};

const MODEL: &str = "gemini-2.5-flash";

/// Flags without a value.
const ALONE: &[&str] = &[
    "-d",
    "--debug",
    "-s",
    "--sandbox",
    "-y",
    "--yolo",
    "--screen-reader",
    "--skip-trust",
    "--raw-output",
    "--accept-raw-output-risk",
];

/// Flags with any number of values: what follows is theirs up to the next flag.
const MANY: &[&str] = &["--allowed-tools", "--allowed-mcp-server-names", "--include-directories", "-e", "--extensions"];

/// How the CLI writes what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Document,
    Lines,
}

#[derive(Debug)]
pub(super) struct Gemini {
    once: Once,
    format: Format,
    session: String,
    calls: ModelCalls,
    tools: u32,
    tools_failed: u32,
    said: String,
    exit: i32,
}

/// Whether these arguments ask for a one-shot form.
pub(super) fn check(arguments: &Arguments) -> Result<(), StoryError> {
    let wrong = |known| Err(StoryError::Form { agent: "gemini", known });
    match format(arguments) {
        Some("text" | "json" | "stream-json") => Ok(()),
        Some(_) => wrong("--output-format is text, json or stream-json"),
        None if prompt(arguments).is_some() => Ok(()),
        None => wrong("--acp, --output-format or a prompt is needed"),
    }
}

fn format(arguments: &Arguments) -> Option<&str> {
    arguments.value("--output-format").or(arguments.value("-o"))
}

fn prompt(arguments: &Arguments) -> Option<&str> {
    let flag = arguments.value("--prompt").or(arguments.value("-p"));
    flag.or_else(|| arguments.positional(ALONE, MANY))
}

impl Gemini {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let old = arguments.value("--resume").or(arguments.value("-r")).filter(|id| *id != "latest");
        let session = arguments.value("--session-id").or(old).map_or_else(calls::session, str::to_owned);
        let format = match format(arguments) {
            Some("stream-json") => Format::Lines,
            Some("json") => Format::Document,
            _ => Format::Text,
        };
        let (once, calls, said) = (Once::of(prompt(arguments)), ModelCalls::default(), String::new());
        Self { once, format, session, calls, tools: 0, tools_failed: 0, said, exit: 0 }
    }

    /// Writes a line, where lines are written.
    fn tell(&self, kind: &str, mut line: Value) -> io::Result<()> {
        if self.format != Format::Lines {
            return Ok(());
        }
        put(&mut line, "type", kind.into());
        // Lines have times, which nobody goes by.
        put(&mut line, "timestamp", "2026-01-01T00:00:00.000Z".into());
        write(&line)
    }

    /// The figures of a document.
    fn stats(&self) -> Value {
        let calls = self.calls.of_process();
        let api = json!({"totalRequests": calls, "totalErrors": 0, "totalLatencyMs": calls, "errorsByType": {}});
        let tokens = json!({
            "input": 25 * calls, "prompt": 75 * calls, "candidates": 40 * calls, "total": 115 * calls,
            "cached": 50 * calls, "thoughts": 0, "tool": 0,
        });
        let models = if calls == 0 { json!({}) } else { json!({ MODEL: {"api": api, "tokens": tokens, "roles": {}} }) };
        let tools = json!({
            "totalCalls": self.tools, "totalSuccess": self.tools - self.tools_failed, "totalFail": self.tools_failed,
            "totalDurationMs": 0, "byName": {},
            "totalDecisions": {"accept": 0, "reject": 0, "modify": 0, "auto_accept": 0},
        });
        json!({"models": models, "tools": tools, "files": {"totalLinesAdded": 0, "totalLinesRemoved": 0}})
    }

    /// The end of a form that is no lines.
    fn conclude(&self, end: &End) -> io::Result<()> {
        match (self.format, end) {
            (Format::Document, End::Failed { status, message }) => {
                let error = json!({"type": "Error", "message": message, "code": status});
                let document = json!({"session_id": self.session, "error": error});
                writeln!(io::stderr().lock(), "{document:#}")
            }
            (Format::Document, _) => {
                let response = json!({"session_id": self.session, "response": self.said, "stats": self.stats()});
                writeln!(io::stdout().lock(), "{response:#}")
            }
            (_, End::Failed { message, .. }) => writeln!(io::stderr().lock(), "{message}"),
            _ => writeln!(io::stdout().lock(), "{}", self.said),
        }
    }
}

impl Tongue for Gemini {
    fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        Ok(self.once.hear(until))
    }

    fn shell(&self) -> &'static str {
        "run_shell_command"
    }

    fn begin(&mut self, prompt: &str) -> io::Result<()> {
        self.calls.begin_turn();
        self.tell("init", json!({"session_id": self.session, "model": MODEL}))?;
        self.tell("message", json!({"role": "user", "content": prompt}))
    }

    /// These forms show no thoughts.
    fn think(&mut self, _text: &str) -> io::Result<()> {
        self.calls.add();
        Ok(())
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.calls.add();
        self.said.push_str(text);
        for piece in pieces(text) {
            self.tell("message", json!({"role": "assistant", "content": piece, "delta": true}))?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> io::Result<()> {
        self.calls.add();
        self.tools += 1;
        self.tell("tool_use", json!({"tool_name": wire(&call.name), "tool_id": call.id, "parameters": call.input}))
    }

    fn ask(&mut self, _call: &Call) -> io::Result<Asked> {
        Ok(Asked::Nobody)
    }

    fn result(&mut self, call: &Call, outcome: Outcome<'_>) -> io::Result<()> {
        let mut line = json!({"tool_id": call.id, "status": "success"});
        let fail = |line: &mut Value, kind: &str, message: &str| {
            put(line, "status", "error".into());
            put(line, "output", message.into());
            put(line, "error", json!({"type": kind, "message": message}));
        };
        match outcome {
            // A command that fails is a success here, and says so in its output.
            Outcome::Done { output, exit } if call.is_command && exit != 0 => {
                put(&mut line, "output", format!("{output}\nExit Code: {exit}").into());
            }
            Outcome::Done { output, exit: 0 } => put(&mut line, "output", output.into()),
            Outcome::Done { output, .. } => fail(&mut line, "unknown", output),
            Outcome::Denied => fail(&mut line, "policy_violation", "Tool execution denied by policy."),
        }
        self.tools_failed += u32::from(line.get("status").is_some_and(|status| status == "error"));
        self.tell("tool_result", line)
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        let calls = self.calls.of_process();
        let mut tokens = json!({
            "total_tokens": 115 * calls, "input_tokens": 75 * calls, "output_tokens": 40 * calls, "cached": 50 * calls,
            "input": 25 * calls,
        });
        let of_model = tokens.clone();
        put(&mut tokens, "duration_ms", 1.into());
        put(&mut tokens, "tool_calls", self.tools.into());
        put(&mut tokens, "models", json!({ MODEL: of_model }));
        let mut line = json!({"status": "success", "stats": tokens});
        if let End::Failed { status, message } = end {
            let error = json!({"error": {"code": status, "message": message, "status": "UNKNOWN"}});
            put(&mut line, "status", "error".into());
            put(&mut line, "error", json!({"type": "unknown", "message": format!("[API Error: {error}]")}));
            // As the real one does, which gives the status for its exit code.
            self.exit = i32::from(*status) & 0xff;
        }
        if self.format != Format::Lines {
            return self.conclude(end);
        }
        self.tell("result", line)
    }

    fn exit_code(&self) -> i32 {
        self.exit
    }
}

/// `mcp__SERVER__TOOL` as it is written here.
pub(super) fn wire(name: &str) -> String {
    match super::mcp(name) {
        Some((server, tool)) => format!("mcp_{server}_{tool}"),
        None => name.to_owned(),
    }
}
