//! Gemini CLI's one-shot form: `--output-format stream-json`.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::Arguments;
use super::perform::{Asked, Call, End, Heard, Once, Outcome, Tongue, pieces, put, write};

const SESSION: &str = "2a5d0115-0321-461b-80a1-31051807fec0";
const MODEL: &str = "gemini-2.5-flash";

#[derive(Debug)]
pub(super) struct Gemini {
    once: Once,
    session: String,
    calls: u32,
    exit: i32,
}

impl Gemini {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let asked = arguments.value("--session-id").or(arguments.value("--resume")).filter(|id| *id != "latest");
        let session = asked.unwrap_or(SESSION).to_owned();
        Self { once: Once::of(arguments.value("--prompt")), session, calls: 0, exit: 0 }
    }
}

/// Lines have times, which nobody goes by.
fn tell(kind: &str, mut line: Value) -> io::Result<()> {
    put(&mut line, "type", kind.into());
    put(&mut line, "timestamp", "2026-01-01T00:00:00.000Z".into());
    write(&line)
}

impl Tongue for Gemini {
    fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        Ok(self.once.hear(until))
    }

    fn shell(&self) -> &'static str {
        "run_shell_command"
    }

    fn begin(&mut self, prompt: &str) -> io::Result<()> {
        tell("init", json!({"session_id": self.session, "model": MODEL}))?;
        tell("message", json!({"role": "user", "content": prompt}))
    }

    /// This form shows no thoughts.
    fn think(&mut self, _text: &str) -> io::Result<()> {
        Ok(())
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        for piece in pieces(text) {
            tell("message", json!({"role": "assistant", "content": piece, "delta": true}))?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> io::Result<()> {
        self.calls += 1;
        tell("tool_use", json!({"tool_name": wire(&call.name), "tool_id": call.id, "parameters": call.input}))
    }

    fn ask(&mut self, _call: &Call) -> io::Result<Asked> {
        Ok(Asked::Nobody)
    }

    fn result(&mut self, call: &Call, outcome: Outcome<'_>) -> io::Result<()> {
        let mut line = json!({"tool_id": call.id, "status": "success"});
        let fail = |line: &mut Value, kind: &str, message: &str| {
            put(line, "status", "error".into());
            put(line, "output", message.into());
            put(line, "error", json!({"type": kind, "message": message}));
        };
        match outcome {
            // A command that fails is a success here, and says so in its output.
            Outcome::Done { output, exit } if call.is_command && exit != 0 => {
                put(&mut line, "output", format!("{output}\nExit Code: {exit}").into());
            }
            Outcome::Done { output, exit: 0 } => put(&mut line, "output", output.into()),
            Outcome::Done { output, .. } => fail(&mut line, "unknown", output),
            Outcome::Denied => fail(&mut line, "policy_violation", "Tool execution denied by policy."),
        }
        tell("tool_result", line)
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        let mut tokens =
            json!({"total_tokens": 115, "input_tokens": 75, "output_tokens": 40, "cached": 50, "input": 25});
        let of_model = tokens.clone();
        put(&mut tokens, "duration_ms", 1.into());
        put(&mut tokens, "tool_calls", self.calls.into());
        put(&mut tokens, "models", json!({ MODEL: of_model }));
        let mut line = json!({"status": "success", "stats": tokens});
        if let End::Failed { status, message } = end {
            let error = json!({"error": {"code": status, "message": message, "status": "UNKNOWN"}});
            put(&mut line, "status", "error".into());
            put(&mut line, "error", json!({"type": "unknown", "message": format!("[API Error: {error}]")}));
            // As the real one does, which gives the status for its exit code.
            self.exit = i32::from(*status) & 0xff;
        }
        tell("result", line)
    }

    fn exit_code(&self) -> i32 {
        self.exit
    }
}

/// `mcp__SERVER__TOOL` as it is written here.
pub(super) fn wire(name: &str) -> String {
    match super::mcp(name) {
        Some((server, tool)) => format!("mcp_{server}_{tool}"),
        None => name.to_owned(),
    }
}
