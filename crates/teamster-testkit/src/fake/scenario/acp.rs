//! The live interface of Gemini CLI: ACP.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::calls::{self, ModelCalls};
use super::dialect::{CliDialect, HostInput, PermissionRequest, ToolCall, ToolOutcome, TurnEnd};
use super::gemini::tool_name;
use super::input::{JsonInput, next_json_input};
use super::json::{at, pieces, put, text_of, write};

#[derive(Debug)]
pub(super) struct Acp {
    input: JsonInput,
    session: String,
    /// The id of the request that the current turn answers.
    prompt: Option<Value>,
    requests: u32,
    calls: ModelCalls,
}

impl Default for Acp {
    fn default() -> Self {
        let (input, session, calls) = (JsonInput::default(), calls::session(), ModelCalls::default());
        Self { input, session, prompt: None, requests: 0, calls }
    }
}

impl Acp {
    fn update(&self, update: &Value) -> io::Result<()> {
        let params = json!({"sessionId": self.session, "update": update});
        write(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
    }

    fn handle_message(&mut self, line: &Value) -> io::Result<Option<HostInput>> {
        let (id, params) = (at(line, "/id"), at(line, "/params"));
        let Some(method) = at(line, "/method").as_str() else {
            let option = at(line, "/result/outcome/optionId").as_str().unwrap_or_default();
            return Ok(Some(HostInput::PermissionAnswer(option.starts_with("proceed"))));
        };
        let result = match method {
            "initialize" => json!({
                "protocolVersion": 1, "authMethods": [],
                "agentInfo": {"name": "gemini-cli", "title": "Gemini CLI", "version": "0.61.0"},
                "agentCapabilities": {
                    "loadSession": true, "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
                    "mcpCapabilities": {"http": true, "sse": true},
                },
            }),
            "session/new" => {
                let modes: Vec<_> =
                    ["default", "autoEdit", "yolo", "plan"].map(|id| json!({"id": id, "name": id})).into();
                let modes = json!({"availableModes": modes, "currentModeId": "default"});
                let model_list = json!({"availableModels": [], "currentModelId": "gemini-2.5-flash"});
                json!({"sessionId": self.session, "modes": modes, "models": model_list})
            }
            "session/load" => {
                // The updates have the id that the client has sent, also one that starts with a space.
                if let Some(old) = at(params, "/sessionId").as_str() {
                    old.clone_into(&mut self.session);
                }
                json!({})
            }
            "session/prompt" => {
                self.prompt = Some(id.clone());
                return Ok(Some(HostInput::Prompt(text_of(at(params, "/prompt")))));
            }
            "session/cancel" => return Ok(self.prompt.is_some().then_some(HostInput::Interrupt)),
            _ if id.is_null() => return Ok(None),
            "authenticate" | "session/set_mode" | "session/set_model" => json!({}),
            _ => {
                let error = json!({"code": -32601, "message": format!("{method} is not supported")});
                write(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                return Ok(None);
            }
        };
        write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        Ok(None)
    }

    /// Returns the fields of a tool call. The tool's name is part of the call's id.
    fn tool_call_fields(call: &ToolCall) -> Value {
        let name = tool_name(&call.name);
        let (title, kind) = if call.is_command { (call.command(), "execute") } else { (name.as_str(), "other") };
        json!({
            "toolCallId": format!("{name}__{name}_{}", call.id), "title": title, "kind": kind, "content": [],
            "locations": [], "rawInput": call.input,
        })
    }
}

impl CliDialect for Acp {
    fn next_input(&mut self, deadline: Option<Instant>) -> io::Result<HostInput> {
        next_json_input(self, deadline, |dialect| &mut dialect.input, Self::handle_message)
    }

    fn shell_tool(&self) -> &'static str {
        "run_shell_command"
    }

    fn start_turn(&mut self, _prompt: &str) -> io::Result<()> {
        self.calls.start_turn();
        Ok(())
    }

    fn write_thinking(&mut self, text: &str) -> io::Result<()> {
        self.calls.add();
        self.update(&json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}))
    }

    fn write_message(&mut self, text: &str) -> io::Result<()> {
        self.calls.add();
        for piece in pieces(text) {
            let content = json!({"type": "text", "text": piece});
            self.update(&json!({"sessionUpdate": "agent_message_chunk", "content": content}))?;
        }
        Ok(())
    }

    fn start_tool_call(&mut self, call: &ToolCall) -> io::Result<()> {
        self.calls.add();
        let mut update = Self::tool_call_fields(call);
        put(&mut update, "sessionUpdate", "tool_call".into());
        put(&mut update, "status", "in_progress".into());
        self.update(&update)
    }

    fn request_permission(&mut self, call: &ToolCall) -> io::Result<PermissionRequest> {
        let option = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let mut fields = Self::tool_call_fields(call);
        put(&mut fields, "status", "pending".into());
        let params = json!({
            "sessionId": self.session, "toolCall": fields,
            "options": [
                option("proceed_always", "Allow for this session", "allow_always"),
                option("proceed_once", "Allow", "allow_once"), option("cancel", "Reject", "reject_once"),
            ],
        });
        let id = self.requests;
        self.requests += 1;
        write(&json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params}))?;
        Ok(PermissionRequest::Sent)
    }

    fn finish_tool_call(&mut self, call: &ToolCall, outcome: ToolOutcome<'_>) -> io::Result<()> {
        let (status, output) = match outcome {
            ToolOutcome::Done { output, exit } if exit == 0 || call.is_command => ("completed", output),
            ToolOutcome::Done { output, .. } => ("failed", output),
            ToolOutcome::Denied => ("failed", "Tool execution was denied."),
        };
        let mut update = Self::tool_call_fields(call);
        put(&mut update, "sessionUpdate", "tool_call_update".into());
        put(&mut update, "status", status.into());
        // A command's output is not included in the update.
        if !call.is_command || status == "failed" {
            put(&mut update, "content", json!([{"type": "content", "content": {"type": "text", "text": output}}]));
        }
        self.update(&update)
    }

    fn end_turn(&mut self, end: &TurnEnd) -> io::Result<()> {
        let id = self.prompt.take();
        let calls = self.calls.of_turn();
        let tokens = json!({"input_tokens": 75 * calls, "output_tokens": 40 * calls});
        let quota = json!({"token_count": tokens, "model_usage": []});
        match end {
            TurnEnd::Failed { status, message } => {
                write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": status, "message": message}}))
            }
            end => {
                let reason = if *end == TurnEnd::Completed { "end_turn" } else { "cancelled" };
                let result = json!({"stopReason": reason, "_meta": {"quota": quota}});
                write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            }
        }
    }

    fn exit_code(&self) -> i32 {
        0
    }
}
