//! OpenCode's one-shot form: `opencode run --format json`.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::perform::{Asked, Call, End, Heard, Once, Outcome, Tongue, put, write};
use super::{Arguments, calls};

#[derive(Debug)]
pub(super) struct OpenCode {
    once: Once,
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
        Self { once: Once::default(), session, messages: 0, parts: 0, in_message: false, failed: false }
    }

    fn tell(&self, kind: &str, name: &str, body: Value) -> io::Result<()> {
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
        self.tell(kind, "part", part)
    }

    fn finish(&mut self, reason: &str) -> io::Result<()> {
        self.part("step_finish", "step-finish", json!({"reason": reason, "cost": COST, "tokens": tokens()}))?;
        self.in_message = false;
        Ok(())
    }
}

/// What a call of the model costs, in US dollars.
pub(super) const COST: f64 = 0.001;

/// What a call of the model used.
pub(super) fn tokens() -> Value {
    json!({"total": 115, "input": 25, "output": 40, "reasoning": 0, "cache": {"read": 50, "write": 0}})
}

/// `mcp__SERVER__TOOL` as it is written here.
pub(super) fn wire(name: &str) -> String {
    match super::mcp(name) {
        Some((server, tool)) => format!("{server}_{tool}"),
        None => name.to_owned(),
    }
}

/// How a call that is over stands in its part.
pub(super) fn state(call: &Call, outcome: Outcome<'_>) -> Value {
    let time = json!({"start": 1, "end": 2});
    match outcome {
        Outcome::Done { output, exit } if call.is_command => json!({
            "status": "completed", "input": call.input, "output": output, "title": call.command(), "time": time,
            "metadata": {"output": output, "exit": exit, "truncated": false},
        }),
        Outcome::Done { output, exit: 0 } => json!({
            "status": "completed", "input": call.input, "output": output, "title": "", "time": time, "metadata": {},
        }),
        Outcome::Done { output, .. } => json!({"status": "error", "input": call.input, "error": output, "time": time}),
        Outcome::Denied => {
            let why = "The user rejected permission to use this specific tool call.";
            json!({"status": "error", "input": call.input, "error": why, "time": time})
        }
    }
}

/// What went wrong, as OpenCode says it.
pub(super) fn error(status: u16, message: &str) -> Value {
    json!({"name": "APIError", "data": {"message": message, "statusCode": status, "isRetryable": false}})
}

impl Tongue for OpenCode {
    fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        Ok(self.once.hear(until))
    }

    fn shell(&self) -> &'static str {
        "bash"
    }

    fn begin(&mut self, _prompt: &str) -> io::Result<()> {
        Ok(())
    }

    fn think(&mut self, text: &str) -> io::Result<()> {
        self.part("reasoning", "reasoning", json!({"text": text, "time": {"start": 1, "end": 2}}))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.part("text", "text", json!({"text": text, "time": {"start": 1, "end": 2}}))
    }

    /// A call is told when it is over.
    fn call(&mut self, _call: &Call) -> io::Result<()> {
        Ok(())
    }

    fn ask(&mut self, _call: &Call) -> io::Result<Asked> {
        Ok(Asked::Nobody)
    }

    fn result(&mut self, call: &Call, outcome: Outcome<'_>) -> io::Result<()> {
        let part = json!({"tool": wire(&call.name), "callID": call.id, "state": state(call, outcome)});
        self.part("tool_use", "tool", part)?;
        self.finish("tool-calls")
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        match end {
            End::Well | End::Interrupted => self.finish("stop"),
            End::Failed { status, message } => {
                self.failed = true;
                self.tell("error", "error", error(*status, message))
            }
        }
    }

    fn exit_code(&self) -> i32 {
        i32::from(self.failed)
    }
}
