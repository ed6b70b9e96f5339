//! Claude Code's live form: stream-json in and out, with the control protocol.

use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::Arguments;
use super::perform::{Asked, Call, Ear, End, Heard, Outcome, Tongue, at, hear_line, put, text_of, write};
use crate::fake::CLAUDE_SESSION;
use crate::fake::script::{Script, Step};

#[derive(Debug)]
pub(super) struct Claude {
    ear: Ear,
    session: String,
    /// Scripts that were written: each has messages of its own.
    scripts: u32,
    in_turn: bool,
    said: String,
    denials: Vec<Value>,
    failed: bool,
    /// The request to interrupt the turn.
    interrupt: Option<String>,
}

impl Claude {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let old = arguments.value("--resume").filter(|_| !arguments.has("--fork-session"));
        let session = old.unwrap_or(CLAUDE_SESSION).to_owned();
        let (ear, said, denials) = (Ear::default(), String::new(), Vec::new());
        Self { ear, session, scripts: 0, in_turn: false, said, denials, failed: false, interrupt: None }
    }

    fn write(&mut self, script: &Script) -> io::Result<()> {
        self.scripts += 1;
        let message = format!("msg_fake{}_", self.scripts);
        for step in script.steps() {
            if let Step::Line(line) = step {
                let line = line.to_string().replace(CLAUDE_SESSION, &self.session).replace("msg_fake", &message);
                write(&serde_json::from_str(&line)?)?;
            }
        }
        Ok(())
    }

    /// A line of the host's, if that is something for the story.
    fn heard(&mut self, line: &Value) -> io::Result<Option<Heard>> {
        let request = at(line, "/request");
        Ok(match (at(line, "/type").as_str(), at(request, "/subtype").as_str()) {
            (Some("control_request"), Some("interrupt")) if self.in_turn => {
                self.interrupt = at(line, "/request_id").as_str().map(str::to_owned);
                Some(Heard::Interrupt)
            }
            (Some("control_request"), _) => {
                let response = json!({"subtype": "success", "request_id": at(line, "/request_id"), "response": {}});
                write(&json!({"type": "control_response", "response": response}))?;
                None
            }
            (Some("control_response"), _) => Some(Heard::Answer(at(line, "/response/response/behavior") == "allow")),
            // The model hears it at once.
            (Some("user"), _) if self.in_turn => {
                let mut echo = line.clone();
                put(&mut echo, "isReplay", true.into());
                put(&mut echo, "session_id", self.session.as_str().into());
                write(&echo)?;
                None
            }
            (Some("user"), _) => {
                let content = at(line, "/message/content");
                Some(Heard::Prompt(content.as_str().map_or_else(|| text_of(content), str::to_owned)))
            }
            _ => None,
        })
    }
}

impl Tongue for Claude {
    fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        hear_line(self, until, |tongue| &mut tongue.ear, Self::heard)
    }

    fn shell(&self) -> &'static str {
        "Bash"
    }

    fn begin(&mut self, _prompt: &str) -> io::Result<()> {
        self.in_turn = true;
        self.said.clear();
        self.denials.clear();
        self.write(&Script::new().claude_init())
    }

    fn think(&mut self, text: &str) -> io::Result<()> {
        self.write(&Script::new().claude_thinking(text))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        text.clone_into(&mut self.said);
        self.write(&Script::new().claude_text(text))
    }

    fn call(&mut self, call: &Call) -> io::Result<()> {
        let input = Value::Object(call.input.clone());
        self.write(&Script::new().claude_tool(&call.id, &call.name, &input))
    }

    fn ask(&mut self, call: &Call) -> io::Result<Asked> {
        let request = json!({
            "subtype": "can_use_tool", "tool_name": call.name, "input": call.input, "tool_use_id": call.id,
            "permission_suggestions": [],
        });
        write(&json!({"type": "control_request", "request_id": format!("ask_{}", call.id), "request": request}))?;
        Ok(Asked::Waiting)
    }

    fn result(&mut self, call: &Call, outcome: Outcome<'_>) -> io::Result<()> {
        let script = match outcome {
            Outcome::Done { output, exit: 0 } => Script::new().claude_tool_result(&call.id, output),
            Outcome::Done { output, exit } if call.is_command => {
                Script::new().claude_tool_failed(&call.id, &format!("Exit code {exit}\n{output}"))
            }
            Outcome::Done { output, .. } => Script::new().claude_tool_failed(&call.id, output),
            Outcome::Denied => {
                let denial = json!({"tool_name": call.name, "tool_use_id": call.id, "tool_input": call.input});
                self.denials.push(denial);
                Script::new().claude_tool_failed(&call.id, "The user doesn't want to take this action right now.")
            }
        };
        self.write(&script)
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.in_turn = false;
        self.failed = *end != End::Well;
        let script = match end {
            End::Well => Script::new().claude_result(&self.said),
            End::Interrupted => Script::new().claude_interrupted(),
            End::Failed { status, message } => Script::new().claude_api_error(*status, message),
        };
        let denials = std::mem::take(&mut self.denials);
        let interrupt = self.interrupt.take();
        let steps = script.steps().iter().cloned().map(|step| match step {
            Step::Line(mut line) if at(&line, "/type") == "result" => {
                put(&mut line, "permission_denials", denials.clone().into());
                Step::Line(line)
            }
            Step::Line(mut line) if at(&line, "/type") == "control_response" => {
                if let Some(response) = line.get_mut("response") {
                    put(response, "request_id", interrupt.clone().into());
                }
                Step::Line(line)
            }
            step => step,
        });
        let script = steps.fold(Script::new(), Script::step);
        self.write(&script)
    }

    fn exit_code(&self) -> i32 {
        i32::from(self.failed)
    }
}
