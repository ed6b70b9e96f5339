//! Gemini CLI's one-shot interface, with text, JSON or stream-json output (`--output-format`).

use std::io::{self, Write as _};
use std::time::Instant;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::calls::{self, ModelCalls};
use super::dialect::{CliDialect, HostInput, PermissionRequest, ToolCall, ToolOutcome, TurnEnd};
use super::error::ScenarioError;
use super::input::OneShotInput;
use super::json::{pieces, put, write};
use super::steps::split_mcp_name;

const MODEL: &str = "gemini-2.5-flash";

/// Flags without a value.
const FLAGS_WITHOUT_VALUE: &[&str] = &[
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

/// Flags with any number of values, up to the next flag.
const FLAGS_WITH_MANY_VALUES: &[&str] =
    &["--allowed-tools", "--allowed-split_mcp_name-server-names", "--include-directories", "-e", "--extensions"];

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Document,
    Lines,
}

#[derive(Debug)]
pub(super) struct Gemini {
    input: OneShotInput,
    format: Format,
    session: String,
    calls: ModelCalls,
    tools: u32,
    tools_failed: u32,
    answer: String,
    exit: i32,
}

/// Checks that these arguments select a one-shot run.
pub(super) fn check(arguments: &Arguments) -> Result<(), ScenarioError> {
    let wrong = |supported| Err(ScenarioError::UnsupportedArguments { agent: "gemini", supported });
    match format(arguments) {
        Some("text" | "json" | "stream-json") => Ok(()),
        Some(_) => wrong("--output-format must be text, json or stream-json"),
        None if prompt(arguments).is_some() => Ok(()),
        None => wrong("--acp, --output-format or a prompt is required"),
    }
}

fn format(arguments: &Arguments) -> Option<&str> {
    arguments.value("--output-format").or(arguments.value("-o"))
}

fn prompt(arguments: &Arguments) -> Option<&str> {
    let flag = arguments.value("--prompt").or(arguments.value("-p"));
    flag.or_else(|| arguments.positional(FLAGS_WITHOUT_VALUE, FLAGS_WITH_MANY_VALUES))
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
        let (input, calls, answer) = (OneShotInput::of(prompt(arguments)), ModelCalls::default(), String::new());
        Self { input, format, session, calls, tools: 0, tools_failed: 0, answer, exit: 0 }
    }

    /// Writes a line in the stream-json format; the other formats have no lines.
    fn write_line(&self, kind: &str, mut line: Value) -> io::Result<()> {
        if self.format != Format::Lines {
            return Ok(());
        }
        put(&mut line, "type", kind.into());
        // Each line has a timestamp, which no reader uses.
        put(&mut line, "timestamp", "2026-01-01T00:00:00.000Z".into());
        write(&line)
    }

    /// Returns the figures of the JSON format.
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

    /// Writes the end of a run in the text and JSON formats.
    fn write_end(&self, end: &TurnEnd) -> io::Result<()> {
        match (self.format, end) {
            (Format::Document, TurnEnd::Failed { status, message }) => {
                let error = json!({"type": "Error", "message": message, "code": status});
                let document = json!({"session_id": self.session, "error": error});
                writeln!(io::stderr().lock(), "{document:#}")
            }
            (Format::Document, _) => {
                let response = json!({"session_id": self.session, "response": self.answer, "stats": self.stats()});
                writeln!(io::stdout().lock(), "{response:#}")
            }
            (_, TurnEnd::Failed { message, .. }) => writeln!(io::stderr().lock(), "{message}"),
            _ => writeln!(io::stdout().lock(), "{}", self.answer),
        }
    }
}

impl CliDialect for Gemini {
    fn next_input(&mut self, deadline: Option<Instant>) -> io::Result<HostInput> {
        Ok(self.input.next_input(deadline))
    }

    fn shell_tool(&self) -> &'static str {
        "run_shell_command"
    }

    fn start_turn(&mut self, prompt: &str) -> io::Result<()> {
        self.calls.start_turn();
        self.write_line("init", json!({"session_id": self.session, "model": MODEL}))?;
        self.write_line("message", json!({"role": "user", "content": prompt}))
    }

    /// The one-shot interface shows no thinking.
    fn write_thinking(&mut self, _text: &str) -> io::Result<()> {
        self.calls.add();
        Ok(())
    }

    fn write_message(&mut self, text: &str) -> io::Result<()> {
        self.calls.add();
        self.answer.push_str(text);
        for piece in pieces(text) {
            self.write_line("message", json!({"role": "assistant", "content": piece, "delta": true}))?;
        }
        Ok(())
    }

    fn start_tool_call(&mut self, call: &ToolCall) -> io::Result<()> {
        self.calls.add();
        self.tools += 1;
        self.write_line(
            "tool_use",
            json!({"tool_name": tool_name(&call.name), "tool_id": call.id, "parameters": call.input}),
        )
    }

    fn request_permission(&mut self, _call: &ToolCall) -> io::Result<PermissionRequest> {
        Ok(PermissionRequest::Unsupported)
    }

    fn finish_tool_call(&mut self, call: &ToolCall, outcome: ToolOutcome<'_>) -> io::Result<()> {
        let mut line = json!({"tool_id": call.id, "status": "success"});
        let fail = |line: &mut Value, kind: &str, message: &str| {
            put(line, "status", "error".into());
            put(line, "output", message.into());
            put(line, "error", json!({"type": kind, "message": message}));
        };
        match outcome {
            // A failed command is a success here, with the exit code in its output.
            ToolOutcome::Done { output, exit } if call.is_command && exit != 0 => {
                put(&mut line, "output", format!("{output}\nExit Code: {exit}").into());
            }
            ToolOutcome::Done { output, exit: 0 } => put(&mut line, "output", output.into()),
            ToolOutcome::Done { output, .. } => fail(&mut line, "unknown", output),
            ToolOutcome::Denied => fail(&mut line, "policy_violation", "Tool execution denied by policy."),
        }
        self.tools_failed += u32::from(line.get("status").is_some_and(|status| status == "error"));
        self.write_line("tool_result", line)
    }

    fn end_turn(&mut self, end: &TurnEnd) -> io::Result<()> {
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
        if let TurnEnd::Failed { status, message } = end {
            let error = json!({"error": {"code": status, "message": message, "status": "UNKNOWN"}});
            put(&mut line, "status", "error".into());
            put(&mut line, "error", json!({"type": "unknown", "message": format!("[API Error: {error}]")}));
            // The real CLI also uses the HTTP status as its exit code.
            self.exit = i32::from(*status) & 0xff;
        }
        if self.format != Format::Lines {
            return self.write_end(end);
        }
        self.write_line("result", line)
    }

    fn exit_code(&self) -> i32 {
        self.exit
    }
}

/// Returns `mcp__SERVER__TOOL` in the format of this CLI.
pub(super) fn tool_name(name: &str) -> String {
    match split_mcp_name(name) {
        Some((server, tool)) => format!("mcp_{server}_{tool}"),
        None => name.to_owned(),
    }
}
