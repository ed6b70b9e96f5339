//! OpenCode's one-shot interface: `opencode run --format json`.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::calls;
use super::dialect::{CliDialect, HostInput, PermissionRequest, ToolCall, ToolOutcome, TurnEnd};
use super::input::OneShotInput;
use super::json::{put, write};
use super::steps::split_mcp_name;

#[derive(Debug)]
pub(super) struct OpenCode {
    input: OneShotInput,
    session: String,
    messages: u32,
    parts: u32,
    in_message: bool,
    failed: bool,
}

impl OpenCode {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let old = arguments.value("--session").filter(|_| !arguments.has("--fork"));
        let session = old.map_or_else(calls::opencode_session, str::to_owned);
        Self { input: OneShotInput::default(), session, messages: 0, parts: 0, in_message: false, failed: false }
    }

    fn write_line(&self, kind: &str, name: &str, body: Value) -> io::Result<()> {
        let mut line = json!({"type": kind, "timestamp": 1_767_225_600_000_u64, "sessionID": self.session});
        put(&mut line, name, body);
        write(&line)
    }

    fn part(&mut self, kind: &str, part_kind: &str, mut part: Value) -> io::Result<()> {
        if kind != "step_start" && !self.in_message {
            self.messages += 1;
            self.in_message = true;
            self.part("step_start", "step-start", json!({}))?;
        }
        self.parts += 1;
        put(&mut part, "type", part_kind.into());
        put(&mut part, "id", format!("prt_{:08}", self.parts).into());
        put(&mut part, "messageID", format!("msg_{:08}", self.messages).into());
        put(&mut part, "sessionID", self.session.as_str().into());
        self.write_line(kind, "part", part)
    }

    fn finish(&mut self, reason: &str) -> io::Result<()> {
        self.part("step_finish", "step-finish", json!({"reason": reason, "cost": COST, "tokens": tokens()}))?;
        self.in_message = false;
        Ok(())
    }
}

/// The cost of one model call, in US dollars.
pub(super) const COST: f64 = 0.001;

/// Returns the tokens of one model call.
pub(super) fn tokens() -> Value {
    json!({"total": 115, "input": 25, "output": 40, "reasoning": 0, "cache": {"read": 50, "write": 0}})
}

/// Returns `mcp__SERVER__TOOL` in the format of this CLI.
pub(super) fn tool_name(name: &str) -> String {
    match split_mcp_name(name) {
        Some((server, tool)) => format!("{server}_{tool}"),
        None => name.to_owned(),
    }
}

/// Returns the state of a finished tool call.
pub(super) fn tool_state(call: &ToolCall, outcome: ToolOutcome<'_>) -> Value {
    let time = json!({"start": 1, "end": 2});
    match outcome {
        ToolOutcome::Done { output, exit } if call.is_command => json!({
            "status": "completed", "input": call.input, "output": output, "title": call.command(), "time": time,
            "metadata": {"output": output, "exit": exit, "truncated": false},
        }),
        ToolOutcome::Done { output, exit: 0 } => json!({
            "status": "completed", "input": call.input, "output": output, "title": "", "time": time, "metadata": {},
        }),
        ToolOutcome::Done { output, .. } => {
            json!({"status": "error", "input": call.input, "error": output, "time": time})
        }
        ToolOutcome::Denied => {
            let why = "The user rejected permission to use this specific tool call.";
            json!({"status": "error", "input": call.input, "error": why, "time": time})
        }
    }
}

/// Returns an error in OpenCode's format.
pub(super) fn error(status: u16, message: &str) -> Value {
    json!({"name": "APIError", "data": {"message": message, "statusCode": status, "isRetryable": false}})
}

impl CliDialect for OpenCode {
    fn next_input(&mut self, deadline: Option<Instant>) -> io::Result<HostInput> {
        Ok(self.input.next_input(deadline))
    }

    fn shell_tool(&self) -> &'static str {
        "bash"
    }

    fn start_turn(&mut self, _prompt: &str) -> io::Result<()> {
        Ok(())
    }

    fn write_thinking(&mut self, text: &str) -> io::Result<()> {
        self.part("reasoning", "reasoning", json!({"text": text, "time": {"start": 1, "end": 2}}))
    }

    fn write_message(&mut self, text: &str) -> io::Result<()> {
        self.part("text", "text", json!({"text": text, "time": {"start": 1, "end": 2}}))
    }

    /// A call is reported when it has ended.
    fn start_tool_call(&mut self, _call: &ToolCall) -> io::Result<()> {
        Ok(())
    }

    fn request_permission(&mut self, _call: &ToolCall) -> io::Result<PermissionRequest> {
        Ok(PermissionRequest::Unsupported)
    }

    fn finish_tool_call(&mut self, call: &ToolCall, outcome: ToolOutcome<'_>) -> io::Result<()> {
        let part = json!({"tool": tool_name(&call.name), "callID": call.id, "state": tool_state(call, outcome)});
        self.part("tool_use", "tool", part)?;
        self.finish("tool-calls")
    }

    fn end_turn(&mut self, end: &TurnEnd) -> io::Result<()> {
        match end {
            TurnEnd::Completed | TurnEnd::Interrupted => self.finish("stop"),
            TurnEnd::Failed { status, message } => {
                self.failed = true;
                self.write_line("error", "error", error(*status, message))
            }
        }
    }

    fn exit_code(&self) -> i32 {
        i32::from(self.failed)
    }
}
