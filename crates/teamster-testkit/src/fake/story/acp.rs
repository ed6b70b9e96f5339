//! Gemini CLI's live form: ACP.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::calls::{self, ModelCalls};
use super::gemini::wire;
use super::perform::{Asked, Call, Ear, End, Heard, Outcome, Tongue, at, hear_line, pieces, put, text_of, write};

#[derive(Debug)]
pub(super) struct Acp {
    ear: Ear,
    session: String,
    /// The call that the running turn answers.
    prompt: Option<Value>,
    requests: u32,
    calls: ModelCalls,
}

impl Default for Acp {
    fn default() -> Self {
        let (ear, session, calls) = (Ear::default(), calls::session(), ModelCalls::default());
        Self { ear, session, prompt: None, requests: 0, calls }
    }
}

impl Acp {
    fn update(&self, update: &Value) -> io::Result<()> {
        let params = json!({"sessionId": self.session, "update": update});
        write(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
    }

    fn heard(&mut self, line: &Value) -> io::Result<Option<Heard>> {
        let (id, params) = (at(line, "/id"), at(line, "/params"));
        let Some(method) = at(line, "/method").as_str() else {
            let option = at(line, "/result/outcome/optionId").as_str().unwrap_or_default();
            return Ok(Some(Heard::Answer(option.starts_with("proceed"))));
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
                let known = json!({"availableModels": [], "currentModelId": "gemini-2.5-flash"});
                json!({"sessionId": self.session, "modes": modes, "models": known})
            }
            "session/load" => {
                // Before it may stand a space.
                if let Some(old) = at(params, "/sessionId").as_str() {
                    old.trim().clone_into(&mut self.session);
                }
                json!({})
            }
            "session/prompt" => {
                self.prompt = Some(id.clone());
                return Ok(Some(Heard::Prompt(text_of(at(params, "/prompt")))));
            }
            "session/cancel" => return Ok(self.prompt.is_some().then_some(Heard::Interrupt)),
            _ if id.is_null() => return Ok(None),
            "authenticate" | "session/set_mode" | "session/set_model" => json!({}),
            _ => {
                let error = json!({"code": -32601, "message": format!("{method} is not played")});
                write(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                return Ok(None);
            }
        };
        write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        Ok(None)
    }

    /// A call as an update; its name stands in its id.
    fn told(call: &Call) -> Value {
        let name = wire(&call.name);
        let (title, kind) = if call.is_command { (call.command(), "execute") } else { (name.as_str(), "other") };
        json!({
            "toolCallId": format!("{name}__{name}_{}", call.id), "title": title, "kind": kind, "content": [],
            "locations": [], "rawInput": call.input,
        })
    }
}

impl Tongue for Acp {
    fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        hear_line(self, until, |tongue| &mut tongue.ear, Self::heard)
    }

    fn shell(&self) -> &'static str {
        "run_shell_command"
    }

    fn begin(&mut self, _prompt: &str) -> io::Result<()> {
        self.calls.begin_turn();
        Ok(())
    }

    fn think(&mut self, text: &str) -> io::Result<()> {
        self.calls.add();
        self.update(&json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.calls.add();
        for piece in pieces(text) {
            let content = json!({"type": "text", "text": piece});
            self.update(&json!({"sessionUpdate": "agent_message_chunk", "content": content}))?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> io::Result<()> {
        self.calls.add();
        let mut update = Self::told(call);
        put(&mut update, "sessionUpdate", "tool_call".into());
        put(&mut update, "status", "in_progress".into());
        self.update(&update)
    }

    fn ask(&mut self, call: &Call) -> io::Result<Asked> {
        let option = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let mut told = Self::told(call);
        put(&mut told, "status", "pending".into());
        let params = json!({
            "sessionId": self.session, "toolCall": told,
            "options": [
                option("proceed_always", "Allow for this session", "allow_always"),
                option("proceed_once", "Allow", "allow_once"), option("cancel", "Reject", "reject_once"),
            ],
        });
        let id = self.requests;
        self.requests += 1;
        write(&json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params}))?;
        Ok(Asked::Waiting)
    }

    fn result(&mut self, call: &Call, outcome: Outcome<'_>) -> io::Result<()> {
        let (status, output) = match outcome {
            Outcome::Done { output, exit } if exit == 0 || call.is_command => ("completed", output),
            Outcome::Done { output, .. } => ("failed", output),
            Outcome::Denied => ("failed", "Tool execution was denied."),
        };
        let mut update = Self::told(call);
        put(&mut update, "sessionUpdate", "tool_call_update".into());
        put(&mut update, "status", status.into());
        // Of a command its user is shown nothing here.
        if !call.is_command || status == "failed" {
            put(&mut update, "content", json!([{"type": "content", "content": {"type": "text", "text": output}}]));
        }
        self.update(&update)
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        let id = self.prompt.take();
        let calls = self.calls.of_turn();
        let tokens = json!({"input_tokens": 75 * calls, "output_tokens": 40 * calls});
        let quota = json!({"token_count": tokens, "model_usage": []});
        match end {
            End::Failed { status, message } => {
                write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": status, "message": message}}))
            }
            end => {
                let reason = if *end == End::Well { "end_turn" } else { "cancelled" };
                let result = json!({"stopReason": reason, "_meta": {"quota": quota}});
                write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            }
        }
    }

    fn exit_code(&self) -> i32 {
        0
    }
}
