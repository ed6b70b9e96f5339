//! Codex' one-shot form: `codex exec --json`.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::calls::{self, ModelCalls};
use super::perform::{Asked, Call, End, Heard, Once, Outcome, Tongue, write};
use super::{Arguments, mcp};

#[derive(Debug)]
pub(super) struct Exec {
    once: Once,
    thread: String,
    items: u32,
    calls: ModelCalls,
    failed: bool,
}

impl Exec {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let old = arguments.after("resume").filter(|id| !id.starts_with('-'));
        let thread = old.map_or_else(calls::thread, str::to_owned);
        Self { once: Once::default(), thread, items: 0, calls: ModelCalls::default(), failed: false }
    }

    fn next_item(&mut self) -> String {
        self.items += 1;
        format!("item_{}", self.items)
    }

    fn item(call: &Call, outcome: Option<Outcome<'_>>) -> Value {
        let status = match outcome {
            None => "in_progress",
            Some(Outcome::Done { exit: 0, .. }) => "completed",
            Some(Outcome::Done { .. }) => "failed",
            Some(Outcome::Denied) => "declined",
        };
        if let Some((server, tool)) = mcp(&call.name) {
            let (result, error) = match outcome {
                Some(Outcome::Done { output, .. }) => {
                    let content = json!([{"type": "text", "text": output}]);
                    (json!({"content": content, "structured_content": null}), Value::Null)
                }
                Some(Outcome::Denied) => (Value::Null, json!({"message": "user cancelled MCP tool call"})),
                None => (Value::Null, Value::Null),
            };
            let status = if status == "declined" { "failed" } else { status };
            return json!({
                "type": "mcp_tool_call", "id": call.id, "server": server, "tool": tool, "arguments": call.input,
                "result": result, "error": error, "status": status,
            });
        }
        let (output, exit) = match outcome {
            Some(Outcome::Done { output, exit }) => (output, json!(exit)),
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

impl Tongue for Exec {
    fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        Ok(self.once.hear(until))
    }

    fn shell(&self) -> &'static str {
        "command_execution"
    }

    fn begin(&mut self, _prompt: &str) -> io::Result<()> {
        write(&json!({"type": "thread.started", "thread_id": self.thread}))?;
        write(&json!({"type": "turn.started"}))
    }

    fn think(&mut self, text: &str) -> io::Result<()> {
        let id = self.next_item();
        self.calls.add();
        completed(&json!({"id": id, "type": "reasoning", "text": text}))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        let id = self.next_item();
        self.calls.add();
        completed(&json!({"id": id, "type": "agent_message", "text": text}))
    }

    fn call(&mut self, call: &Call) -> io::Result<()> {
        self.calls.add();
        write(&json!({"type": "item.started", "item": Self::item(call, None)}))
    }

    fn ask(&mut self, _call: &Call) -> io::Result<Asked> {
        Ok(Asked::Nobody)
    }

    fn result(&mut self, call: &Call, outcome: Outcome<'_>) -> io::Result<()> {
        completed(&Self::item(call, Some(outcome)))
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.failed = *end != End::Well;
        match end {
            End::Well | End::Interrupted => {
                let calls = self.calls.of_process();
                let usage = json!({
                    "input_tokens": 75 * calls, "cached_input_tokens": 50 * calls, "cache_write_input_tokens": 0,
                    "output_tokens": 40 * calls, "reasoning_output_tokens": 0,
                });
                write(&json!({"type": "turn.completed", "usage": usage}))
            }
            End::Failed { status, message } => {
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
