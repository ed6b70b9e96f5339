//! OpenCode's own server: `opencode serve`.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::calls;
use super::opencode::{COST, error, state, tokens, wire};
use super::perform::{Asked, Call, End, Heard, Outcome, Tongue, at, pieces, put, text_of};
use crate::fake::http::{Called, Server, announce};

#[derive(Debug)]
pub(super) struct Serve {
    server: Server,
    directory: String,
    session: String,
    /// Ids ascend.
    ids: u32,
    in_turn: bool,
    /// The message of the user's that the model answers.
    prompt: String,
    /// The message that the model makes.
    message: Option<String>,
    /// Whether the model has said nothing since it was told something.
    owes: bool,
}

impl Serve {
    pub(super) fn start() -> io::Result<Self> {
        let server = Server::start()?;
        announce(&server)?;
        let directory = std::env::current_dir()?.to_string_lossy().into_owned();
        let (session, prompt) = (calls::opencode_session(), String::new());
        Ok(Self { server, directory, session, ids: 0, in_turn: false, prompt, message: None, owes: false })
    }

    fn next(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_{:08}", self.ids)
    }

    fn tell(&self, kind: &str, mut properties: Value) {
        put(&mut properties, "sessionID", self.session.as_str().into());
        self.server.tell(&json!({"id": "evt_0", "type": kind, "properties": properties}).to_string());
    }

    fn status(&self, status: &str) {
        self.tell("session.status", json!({"status": {"type": status}}));
    }

    fn part(&self, id: &str, message: &str, kind: &str, mut part: Value) {
        put(&mut part, "id", id.into());
        put(&mut part, "messageID", message.into());
        put(&mut part, "sessionID", self.session.as_str().into());
        put(&mut part, "type", kind.into());
        self.tell("message.part.updated", json!({"part": part, "time": 1}));
    }

    /// The user's words are written down.
    fn heard(&mut self, text: &str) {
        self.prompt = self.next("msg");
        let info = json!({"id": self.prompt, "role": "user", "sessionID": self.session, "time": {"created": 1}});
        self.tell("message.updated", json!({ "info": info }));
        let part = self.next("prt");
        self.part(&part, &self.prompt, "text", json!({ "text": text }));
        self.owes = true;
    }

    fn info(&self, message: &str, more: &Value) {
        let mut info = json!({
            "id": message, "parentID": self.prompt, "role": "assistant", "sessionID": self.session, "cost": COST,
            "modelID": "fake", "providerID": "fake", "tokens": tokens(), "time": {"created": 1},
        });
        if let (Some(info), Some(more)) = (info.as_object_mut(), more.as_object()) {
            info.extend(more.clone());
        }
        self.tell("message.updated", json!({ "info": info }));
    }

    /// The message that is being made: another one, if there is none.
    fn message(&mut self) -> String {
        if let Some(message) = &self.message {
            return message.clone();
        }
        let message = self.next("msg");
        self.info(&message, &json!({}));
        self.owes = false;
        self.message = Some(message.clone());
        message
    }

    /// The call of the model is over.
    fn finish(&mut self, reason: &str) {
        let message = self.message();
        let part = self.next("prt");
        self.part(&part, &message, "step-finish", json!({"reason": reason, "cost": COST, "tokens": tokens()}));
        self.info(&message, &json!({"finish": reason, "time": {"created": 1, "completed": 2}}));
        self.message = None;
    }

    fn spoken(&mut self, kind: &str, text: &str) {
        let (message, part) = (self.message(), self.next("prt"));
        self.part(&part, &message, kind, json!({"text": "", "time": {"start": 1}}));
        for piece in pieces(text) {
            let delta = json!({"messageID": message, "partID": part, "field": "text", "delta": piece});
            self.tell("message.part.delta", delta);
        }
        self.part(&part, &message, kind, json!({"text": text, "time": {"start": 1, "end": 2}}));
    }

    fn tool(&mut self, call: &Call, state: &Value) {
        let message = self.message();
        let part = json!({"tool": wire(&call.name), "callID": call.id, "state": state});
        self.part(&format!("prt_{}", call.id), &message, "tool", part);
    }

    fn called(&mut self, call: Called) -> Option<Heard> {
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
                    return Some(Heard::Prompt(text));
                }
                // The model hears it with its next message.
                if self.message.is_some() {
                    self.finish("tool-calls");
                }
                self.heard(&text);
            }
            ("POST", ["session", _, "abort"]) => {
                call.answer(200, &json!(true));
                return self.in_turn.then_some(Heard::Interrupt);
            }
            ("POST", ["permission", id, "reply"]) => {
                call.answer(200, &json!(true));
                self.tell("permission.replied", json!({"requestID": id, "reply": at(&body, "/reply")}));
                return Some(Heard::Answer(at(&body, "/reply") == "once" || at(&body, "/reply") == "always"));
            }
            _ => call.answer(404, &json!({"name": "NotFoundError", "data": {"message": "it is not played"}})),
        }
        None
    }
}

impl Tongue for Serve {
    fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        loop {
            match self.server.next(until) {
                None => return Ok(if until.is_some() { Heard::Nothing } else { Heard::End }),
                Some(call) => {
                    if let Some(heard) = self.called(call) {
                        return Ok(heard);
                    }
                }
            }
        }
    }

    fn shell(&self) -> &'static str {
        "bash"
    }

    fn begin(&mut self, prompt: &str) -> io::Result<()> {
        self.in_turn = true;
        self.heard(prompt);
        self.status("busy");
        Ok(())
    }

    fn think(&mut self, text: &str) -> io::Result<()> {
        self.spoken("reasoning", text);
        Ok(())
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.spoken("text", text);
        Ok(())
    }

    fn call(&mut self, call: &Call) -> io::Result<()> {
        self.tool(call, &json!({"status": "running", "input": call.input, "time": {"start": 1}}));
        Ok(())
    }

    fn ask(&mut self, call: &Call) -> io::Result<Asked> {
        let message = self.message();
        let asked = json!({
            "id": format!("per_{}", call.id), "permission": wire(&call.name), "patterns": [call.command()],
            "metadata": {}, "always": [call.command()], "tool": {"messageID": message, "callID": call.id},
        });
        self.tell("permission.asked", asked);
        Ok(Asked::Waiting)
    }

    fn result(&mut self, call: &Call, outcome: Outcome<'_>) -> io::Result<()> {
        self.tool(call, &state(call, outcome));
        self.finish("tool-calls");
        Ok(())
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        match end {
            End::Well => {
                if self.message.is_some() || self.owes {
                    self.finish("stop");
                }
            }
            End::Interrupted | End::Failed { .. } => {
                let error = match end {
                    End::Failed { status, message } => error(*status, message),
                    _ => json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}}),
                };
                let message = self.message();
                self.tell("session.error", json!({ "error": error }));
                self.info(&message, &json!({"error": error, "time": {"created": 1, "completed": 2}}));
                self.message = None;
            }
        }
        (self.in_turn, self.owes) = (false, false);
        self.status("idle");
        self.tell("session.idle", json!({}));
        Ok(())
    }

    fn exit_code(&self) -> i32 {
        0
    }
}
