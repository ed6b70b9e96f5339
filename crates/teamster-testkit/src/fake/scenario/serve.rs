//! OpenCode's server: `opencode serve`.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::calls;
use super::dialect::{CliDialect, HostInput, PermissionRequest, ToolCall, ToolOutcome, TurnEnd};
use super::json::{at, pieces, put, text_of};
use super::opencode::{COST, error, tokens, tool_name, tool_state};
use crate::fake::cli_server::{PendingCall, Server, announce};

#[derive(Debug)]
pub(super) struct Serve {
    server: Server,
    directory: String,
    session: String,
    /// The last id. Ids ascend.
    ids: u32,
    in_turn: bool,
    /// The id of the user message that the model answers.
    prompt: String,
    /// The id of the message that the model is producing.
    message: Option<String>,
    /// Whether the model has produced nothing since the last user message.
    response_due: bool,
}

impl Serve {
    pub(super) fn start() -> io::Result<Self> {
        let server = Server::start()?;
        announce(&server)?;
        let directory = std::env::current_dir()?.to_string_lossy().into_owned();
        let (session, prompt) = (calls::opencode_session(), String::new());
        Ok(Self { server, directory, session, ids: 0, in_turn: false, prompt, message: None, response_due: false })
    }

    fn next(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_{:08}", self.ids)
    }

    fn emit(&self, kind: &str, mut properties: Value) {
        put(&mut properties, "sessionID", self.session.as_str().into());
        self.server.emit(&json!({"id": "evt_0", "type": kind, "properties": properties}).to_string());
    }

    fn status(&self, status: &str) {
        self.emit("session.status", json!({"status": {"type": status}}));
    }

    fn part(&self, id: &str, message: &str, kind: &str, mut part: Value) {
        put(&mut part, "id", id.into());
        put(&mut part, "messageID", message.into());
        put(&mut part, "sessionID", self.session.as_str().into());
        put(&mut part, "type", kind.into());
        self.emit("message.part.updated", json!({"part": part, "time": 1}));
    }

    /// Adds a user message to the session.
    fn add_user_message(&mut self, text: &str) {
        self.prompt = self.next("msg");
        let info = json!({"id": self.prompt, "role": "user", "sessionID": self.session, "time": {"created": 1}});
        self.emit("message.updated", json!({ "info": info }));
        let part = self.next("prt");
        self.part(&part, &self.prompt, "text", json!({ "text": text }));
        self.response_due = true;
    }

    fn info(&self, message: &str, more: &Value) {
        let mut info = json!({
            "id": message, "parentID": self.prompt, "role": "assistant", "sessionID": self.session, "cost": COST,
            "modelID": "fake", "providerID": "fake", "tokens": tokens(), "time": {"created": 1},
        });
        if let (Some(info), Some(more)) = (info.as_object_mut(), more.as_object()) {
            info.extend(more.clone());
        }
        self.emit("message.updated", json!({ "info": info }));
    }

    /// Returns the current message of the model, and creates one if there is none.
    fn message(&mut self) -> String {
        if let Some(message) = &self.message {
            return message.clone();
        }
        let message = self.next("msg");
        self.info(&message, &json!({}));
        self.response_due = false;
        self.message = Some(message.clone());
        message
    }

    /// Ends the current model call.
    fn finish(&mut self, reason: &str) {
        let message = self.message();
        let part = self.next("prt");
        self.part(&part, &message, "step-finish", json!({"reason": reason, "cost": COST, "tokens": tokens()}));
        self.info(&message, &json!({"finish": reason, "time": {"created": 1, "completed": 2}}));
        self.message = None;
    }

    fn write_part(&mut self, kind: &str, text: &str) {
        let (message, part) = (self.message(), self.next("prt"));
        self.part(&part, &message, kind, json!({"text": "", "time": {"start": 1}}));
        for piece in pieces(text) {
            let delta = json!({"messageID": message, "partID": part, "field": "text", "delta": piece});
            self.emit("message.part.delta", delta);
        }
        self.part(&part, &message, kind, json!({"text": text, "time": {"start": 1, "end": 2}}));
    }

    fn tool(&mut self, call: &ToolCall, state: &Value) {
        let message = self.message();
        let part = json!({"tool": tool_name(&call.name), "callID": call.id, "state": state});
        self.part(&format!("prt_{}", call.id), &message, "tool", part);
    }

    fn handle_call(&mut self, call: PendingCall) -> Option<HostInput> {
        let path = call.path.split('?').next().unwrap_or_default().to_owned();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        let session = |id: &str| json!({"id": id, "directory": self.directory, "version": "1.18.33", "title": "Fake"});
        let method = call.method.clone();
        match (method.as_str(), parts.as_slice()) {
            ("GET", ["path"]) => call.answer(200, &json!({"directory": self.directory})),
            ("GET", ["mcp"]) => call.answer(200, &json!({})),
            ("GET", ["session"]) => call.answer(200, &json!([])),
            ("GET", ["session", id]) => {
                call.answer(200, &session(id));
                (*id).clone_into(&mut self.session);
            }
            ("POST", ["session"]) => call.answer(200, &session(&self.session)),
            ("POST", ["session", _, "fork"]) => {
                self.session = calls::opencode_session();
                call.answer(200, &json!({"id": self.session, "directory": self.directory, "version": "1.18.33"}));
            }
            ("POST", ["session", _, "prompt_async"]) => {
                let text = text_of(at(&body, "/parts"));
                call.answer(204, &Value::Null);
                if !self.in_turn {
                    return Some(HostInput::Prompt(text));
                }
                // The model receives it with its next message.
                if self.message.is_some() {
                    self.finish("tool-calls");
                }
                self.add_user_message(&text);
            }
            ("POST", ["session", _, "abort"]) => {
                call.answer(200, &json!(true));
                return self.in_turn.then_some(HostInput::Interrupt);
            }
            ("POST", ["permission", id, "reply"]) => {
                call.answer(200, &json!(true));
                self.emit("permission.replied", json!({"requestID": id, "reply": at(&body, "/reply")}));
                return Some(HostInput::PermissionAnswer(
                    at(&body, "/reply") == "once" || at(&body, "/reply") == "always",
                ));
            }
            _ => call.answer(404, &json!({"name": "NotFoundError", "data": {"message": "this call is not supported"}})),
        }
        None
    }
}

impl CliDialect for Serve {
    fn next_input(&mut self, deadline: Option<Instant>) -> io::Result<HostInput> {
        loop {
            match self.server.next(deadline) {
                None => return Ok(if deadline.is_some() { HostInput::Timeout } else { HostInput::Closed }),
                Some(call) => {
                    if let Some(input) = self.handle_call(call) {
                        return Ok(input);
                    }
                }
            }
        }
    }

    fn shell_tool(&self) -> &'static str {
        "bash"
    }

    fn start_turn(&mut self, prompt: &str) -> io::Result<()> {
        self.in_turn = true;
        self.add_user_message(prompt);
        self.status("busy");
        Ok(())
    }

    fn write_thinking(&mut self, text: &str) -> io::Result<()> {
        self.write_part("reasoning", text);
        Ok(())
    }

    fn write_message(&mut self, text: &str) -> io::Result<()> {
        self.write_part("text", text);
        Ok(())
    }

    fn start_tool_call(&mut self, call: &ToolCall) -> io::Result<()> {
        self.tool(call, &json!({"status": "running", "input": call.input, "time": {"start": 1}}));
        Ok(())
    }

    fn request_permission(&mut self, call: &ToolCall) -> io::Result<PermissionRequest> {
        let message = self.message();
        let request = json!({
            "id": format!("per_{}", call.id), "permission": tool_name(&call.name), "patterns": [call.command()],
            "metadata": {}, "always": [call.command()], "tool": {"messageID": message, "callID": call.id},
        });
        self.emit("permission.asked", request);
        Ok(PermissionRequest::Sent)
    }

    fn write_command_output(&mut self, call: &ToolCall, so_far: &str, _line: &str) -> io::Result<()> {
        let metadata = json!({"output": so_far});
        let time = json!({"start": 1});
        self.tool(call, &json!({"status": "running", "input": call.input, "time": time, "metadata": metadata}));
        Ok(())
    }

    fn finish_tool_call(&mut self, call: &ToolCall, outcome: ToolOutcome<'_>) -> io::Result<()> {
        self.tool(call, &tool_state(call, outcome));
        self.finish("tool-calls");
        Ok(())
    }

    fn end_turn(&mut self, end: &TurnEnd) -> io::Result<()> {
        match end {
            TurnEnd::Completed => {
                if self.message.is_some() || self.response_due {
                    self.finish("stop");
                }
            }
            TurnEnd::Interrupted | TurnEnd::Failed { .. } => {
                let error = match end {
                    TurnEnd::Failed { status, message } => error(*status, message),
                    _ => json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}}),
                };
                let message = self.message();
                self.emit("session.error", json!({ "error": error }));
                self.info(&message, &json!({"error": error, "time": {"created": 1, "completed": 2}}));
                self.message = None;
            }
        }
        (self.in_turn, self.response_due) = (false, false);
        self.status("idle");
        self.emit("session.idle", json!({}));
        Ok(())
    }

    fn exit_code(&self) -> i32 {
        0
    }
}
