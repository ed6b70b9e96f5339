//! Codex app-server: JSON-RPC in lines, without the member `jsonrpc`.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::calls::{self, ModelCalls};
use super::dialect::{CliDialect, HostInput, PermissionRequest, ToolCall, ToolOutcome, TurnEnd};
use super::input::{JsonInput, next_json_input};
use super::json::{at, pieces, put, text_of, write};
use super::steps::split_mcp_name;

#[derive(Debug)]
pub(super) struct AppServer {
    input: JsonInput,
    thread: String,
    turn: u32,
    in_turn: bool,
    items: u32,
    requests: u32,
    calls: ModelCalls,
}

impl Default for AppServer {
    fn default() -> Self {
        let (input, thread, calls) = (JsonInput::default(), calls::thread(), ModelCalls::default());
        Self { input, thread, turn: 0, in_turn: false, items: 0, requests: 0, calls }
    }
}

impl AppServer {
    fn turn_id(&self) -> String {
        format!("turn_{}", self.turn)
    }

    fn notify(&self, method: &str, mut params: Value) -> io::Result<()> {
        put(&mut params, "threadId", self.thread.as_str().into());
        write(&json!({"method": method, "params": params}))
    }

    /// Sends a notification about the current turn.
    fn notify_turn(&self, method: &str, mut params: Value) -> io::Result<()> {
        put(&mut params, "turnId", self.turn_id().into());
        self.notify(method, params)
    }

    fn request(&mut self, method: &str, mut params: Value) -> io::Result<()> {
        put(&mut params, "threadId", self.thread.as_str().into());
        put(&mut params, "turnId", self.turn_id().into());
        write(&json!({"id": self.requests, "method": method, "params": params}))?;
        self.requests += 1;
        Ok(())
    }

    /// Counts a model call and reports the usage of the thread.
    fn model_called(&mut self) -> io::Result<()> {
        self.calls.add();
        let tokens = |calls: u64| {
            json!({
                "inputTokens": 75 * calls, "cachedInputTokens": 50 * calls, "cacheWriteInputTokens": 0,
                "outputTokens": 40 * calls, "reasoningOutputTokens": 0,
            })
        };
        let usage = json!({"total": tokens(self.calls.of_process()), "last": tokens(1), "modelContextWindow": null});
        self.notify_turn("thread/tokenUsage/updated", json!({ "tokenUsage": usage }))
    }

    fn next_item(&mut self) -> String {
        self.items += 1;
        format!("item_{}", self.items)
    }

    fn handle_request(&mut self, line: &Value) -> io::Result<Option<HostInput>> {
        let (id, params) = (at(line, "/id"), at(line, "/params"));
        let Some(method) = at(line, "/method").as_str() else {
            let result = at(line, "/result");
            let decision = at(result, "/decision").as_str().or(at(result, "/action").as_str()).unwrap_or_default();
            return Ok(Some(HostInput::PermissionAnswer(decision.starts_with("accept"))));
        };
        if id.is_null() {
            return Ok(None);
        }
        let mut input = None;
        let result = match method {
            "initialize" => json!({"userAgent": "fake", "platformFamily": "unix", "platformOs": "linux"}),
            "thread/list" => json!({"data": []}),
            "thread/read" => json!({"thread": {"id": at(params, "/threadId")}}),
            "thread/start" | "thread/resume" | "thread/fork" => {
                if let Some(old) = at(params, "/threadId").as_str() {
                    self.thread = if method == "thread/fork" { calls::thread() } else { old.to_owned() };
                }
                let model = at(params, "/model").as_str().unwrap_or("gpt-5.5");
                let thread = json!({"id": self.thread, "cliVersion": "0.169.0"});
                json!({"thread": thread, "model": model, "cwd": std::env::current_dir()?})
            }
            "turn/start" => {
                self.turn += 1;
                input = Some(HostInput::Prompt(text_of(at(params, "/input"))));
                json!({"turn": {"id": self.turn_id(), "status": "inProgress", "items": [], "error": null}})
            }
            "turn/interrupt" => {
                input = self.in_turn.then_some(HostInput::Interrupt);
                json!({})
            }
            // The model receives it at once.
            "turn/steer" if self.in_turn => json!({"turnId": self.turn_id()}),
            "thread/backgroundTerminals/clean" => json!({}),
            _ => {
                let error = json!({"code": -32600, "message": format!("{method} is not supported")});
                write(&json!({"id": id, "error": error}))?;
                return Ok(None);
            }
        };
        write(&json!({"id": id, "result": result}))?;
        Ok(input)
    }

    /// Returns the item of a tool call.
    fn item(call: &ToolCall, outcome: Option<ToolOutcome<'_>>) -> Value {
        let status = match outcome {
            None => "inProgress",
            Some(ToolOutcome::Done { exit: 0, .. }) => "completed",
            Some(ToolOutcome::Done { .. }) => "failed",
            Some(ToolOutcome::Denied) => "declined",
        };
        if let Some((server, tool)) = split_mcp_name(&call.name) {
            let (result, error) = match outcome {
                Some(ToolOutcome::Done { output, .. }) => {
                    (json!({"content": [{"type": "text", "text": output}]}), Value::Null)
                }
                Some(ToolOutcome::Denied) => (Value::Null, json!({"message": "user rejected MCP tool call"})),
                None => (Value::Null, Value::Null),
            };
            let status = if status == "declined" { "failed" } else { status };
            return json!({
                "type": "mcpToolCall", "id": call.id, "server": server, "tool": tool, "status": status,
                "arguments": call.input, "result": result, "error": error,
            });
        }
        let (output, exit) = match outcome {
            Some(ToolOutcome::Done { output, exit }) => (json!(output), json!(exit)),
            _ => (Value::Null, Value::Null),
        };
        json!({
            "type": "commandExecution", "id": call.id, "command": call.command(), "status": status, "source": "agent",
            "aggregatedOutput": output, "exitCode": exit,
        })
    }
}

impl CliDialect for AppServer {
    fn next_input(&mut self, deadline: Option<Instant>) -> io::Result<HostInput> {
        next_json_input(self, deadline, |dialect| &mut dialect.input, Self::handle_request)
    }

    fn shell_tool(&self) -> &'static str {
        "command_execution"
    }

    fn start_turn(&mut self, _prompt: &str) -> io::Result<()> {
        self.in_turn = true;
        self.calls.start_turn();
        self.notify("turn/started", json!({"turn": {"id": self.turn_id(), "status": "inProgress", "error": null}}))
    }

    fn write_thinking(&mut self, text: &str) -> io::Result<()> {
        let id = self.next_item();
        self.notify_turn(
            "item/started",
            json!({"item": {"type": "reasoning", "id": id, "summary": [], "content": []}}),
        )?;
        self.notify_turn("item/reasoning/summaryTextDelta", json!({"itemId": id, "delta": text, "summaryIndex": 0}))?;
        let item = json!({"type": "reasoning", "id": id, "summary": [text], "content": []});
        self.notify_turn("item/completed", json!({ "item": item }))?;
        self.model_called()
    }

    fn write_message(&mut self, text: &str) -> io::Result<()> {
        let id = self.next_item();
        let item = |text: &str| json!({"item": {"type": "agentMessage", "id": id, "text": text}});
        self.notify_turn("item/started", item(""))?;
        for piece in pieces(text) {
            self.notify_turn("item/agentMessage/delta", json!({"itemId": id, "delta": piece}))?;
        }
        self.notify_turn("item/completed", item(text))?;
        self.model_called()
    }

    fn start_tool_call(&mut self, call: &ToolCall) -> io::Result<()> {
        self.notify_turn("item/started", json!({"item": Self::item(call, None)}))?;
        self.model_called()
    }

    fn request_permission(&mut self, call: &ToolCall) -> io::Result<PermissionRequest> {
        if let Some((server, tool)) = split_mcp_name(&call.name) {
            let meta = json!({
                "codex_approval_kind": "mcp_tool_call", "tool_name": tool, "tool_params": call.input,
                "persist": ["session"],
            });
            let form = json!({
                "serverName": server, "mode": "form", "message": format!("Allow {tool}?"), "_meta": meta,
                "requestedSchema": {"type": "object", "properties": {}},
            });
            self.request("mcpServer/elicitation/request", form)?;
        } else {
            let params = json!({"itemId": call.id, "command": call.command(), "cwd": std::env::current_dir()?});
            self.request("item/commandExecution/requestApproval", params)?;
        }
        Ok(PermissionRequest::Sent)
    }

    fn write_command_output(&mut self, call: &ToolCall, _so_far: &str, line: &str) -> io::Result<()> {
        self.notify_turn("item/commandExecution/outputDelta", json!({"itemId": call.id, "delta": line}))
    }

    fn finish_tool_call(&mut self, call: &ToolCall, outcome: ToolOutcome<'_>) -> io::Result<()> {
        self.notify_turn("item/completed", json!({"item": Self::item(call, Some(outcome))}))
    }

    fn end_turn(&mut self, end: &TurnEnd) -> io::Result<()> {
        self.in_turn = false;
        let (status, error) = match end {
            TurnEnd::Completed => ("completed", Value::Null),
            TurnEnd::Interrupted => ("interrupted", Value::Null),
            TurnEnd::Failed { status, message } => {
                let info = json!({"responseTooManyFailedAttempts": {"httpStatusCode": status}});
                ("failed", json!({"message": message, "codexErrorInfo": info, "additionalDetails": null}))
            }
        };
        if !error.is_null() {
            self.notify_turn("error", json!({"error": error, "willRetry": false}))?;
        }
        self.notify("turn/completed", json!({"turn": {"id": self.turn_id(), "status": status, "error": error}}))
    }

    fn exit_code(&self) -> i32 {
        0
    }
}
