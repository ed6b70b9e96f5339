//! Codex's one-shot interface: `codex exec --json`.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::calls::{self, ModelCalls};
use super::dialect::{CliDialect, HostInput, PermissionRequest, ToolCall, ToolOutcome, TurnEnd};
use super::input::OneShotInput;
use super::json::write;
use super::steps::split_mcp_name;

#[derive(Debug)]
pub(super) struct Exec {
    input: OneShotInput,
    thread: String,
    items: u32,
    calls: ModelCalls,
    failed: bool,
}

impl Exec {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let old = arguments.after("resume").filter(|id| !id.starts_with('-'));
        let thread = old.map_or_else(calls::thread, str::to_owned);
        Self { input: OneShotInput::default(), thread, items: 0, calls: ModelCalls::default(), failed: false }
    }

    fn next_item(&mut self) -> String {
        self.items += 1;
        format!("item_{}", self.items)
    }

    fn item(call: &ToolCall, outcome: Option<ToolOutcome<'_>>) -> Value {
        let status = match outcome {
            None => "in_progress",
            Some(ToolOutcome::Done { exit: 0, .. }) => "completed",
            Some(ToolOutcome::Done { .. }) => "failed",
            Some(ToolOutcome::Denied) => "declined",
        };
        if let Some((server, tool)) = split_mcp_name(&call.name) {
            let (result, error) = match outcome {
                Some(ToolOutcome::Done { output, .. }) => {
                    let content = json!([{"type": "text", "text": output}]);
                    (json!({"content": content, "structured_content": null}), Value::Null)
                }
                Some(ToolOutcome::Denied) => (Value::Null, json!({"message": "user cancelled MCP tool call"})),
                None => (Value::Null, Value::Null),
            };
            let status = if status == "declined" { "failed" } else { status };
            return json!({
                "type": "mcp_tool_call", "id": call.id, "server": server, "tool": tool, "arguments": call.input,
                "result": result, "error": error, "status": status,
            });
        }
        let (output, exit) = match outcome {
            Some(ToolOutcome::Done { output, exit }) => (output, json!(exit)),
            _ => ("", Value::Null),
        };
        json!({
            "type": "command_execution", "id": call.id, "command": call.command(), "aggregated_output": output,
            "exit_code": exit, "status": status,
        })
    }
}

fn completed(item: &Value) -> io::Result<()> {
    write(&json!({"type": "item.completed", "item": item}))
}

impl CliDialect for Exec {
    fn next_input(&mut self, deadline: Option<Instant>) -> io::Result<HostInput> {
        Ok(self.input.next_input(deadline))
    }

    fn shell_tool(&self) -> &'static str {
        "command_execution"
    }

    fn start_turn(&mut self, _prompt: &str) -> io::Result<()> {
        write(&json!({"type": "thread.started", "thread_id": self.thread}))?;
        write(&json!({"type": "turn.started"}))
    }

    fn write_thinking(&mut self, text: &str) -> io::Result<()> {
        let id = self.next_item();
        self.calls.add();
        completed(&json!({"id": id, "type": "reasoning", "text": text}))
    }

    fn write_message(&mut self, text: &str) -> io::Result<()> {
        let id = self.next_item();
        self.calls.add();
        completed(&json!({"id": id, "type": "agent_message", "text": text}))
    }

    fn start_tool_call(&mut self, call: &ToolCall) -> io::Result<()> {
        self.calls.add();
        write(&json!({"type": "item.started", "item": Self::item(call, None)}))
    }

    fn request_permission(&mut self, _call: &ToolCall) -> io::Result<PermissionRequest> {
        Ok(PermissionRequest::Unsupported)
    }

    fn finish_tool_call(&mut self, call: &ToolCall, outcome: ToolOutcome<'_>) -> io::Result<()> {
        completed(&Self::item(call, Some(outcome)))
    }

    fn end_turn(&mut self, end: &TurnEnd) -> io::Result<()> {
        self.failed = *end != TurnEnd::Completed;
        match end {
            TurnEnd::Completed | TurnEnd::Interrupted => {
                let calls = self.calls.of_process();
                let usage = json!({
                    "input_tokens": 75 * calls, "cached_input_tokens": 50 * calls, "cache_write_input_tokens": 0,
                    "output_tokens": 40 * calls, "reasoning_output_tokens": 0,
                });
                write(&json!({"type": "turn.completed", "usage": usage}))
            }
            TurnEnd::Failed { status, message } => {
                let message = format!("unexpected status {status}: {message}");
                write(&json!({"type": "error", "message": message}))?;
                write(&json!({"type": "turn.failed", "error": {"message": message}}))
            }
        }
    }

    fn exit_code(&self) -> i32 {
        i32::from(self.failed)
    }
}
