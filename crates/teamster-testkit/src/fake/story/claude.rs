//! Claude Code's forms: stream-json in and out with the control protocol, and one-shot with a text, a document or lines.

use std::io::{self, Write as _};
use std::time::Instant;

use serde_json::{Value, json};

use super::Arguments;
use super::claude_output::Output;
use super::perform::{Asked, Call, Ear, End, Heard, Once, Outcome, Tongue, at, hear_line, put, text_of};
use crate::fake::script::{Script, Step};

/// Flags without a value.
const ALONE: &[&str] = &[
    "-p",
    "--print",
    "--verbose",
    "--include-partial-messages",
    "--dangerously-skip-permissions",
    "--fork-session",
    "-c",
    "--continue",
    "--strict-mcp-config",
    "--replay-user-messages",
    "--no-session-persistence",
    "--bare",
    "--safe-mode",
    "--include-hook-events",
    "--brief",
    "--ide",
    "--chrome",
    "--no-chrome",
    "--disable-slash-commands",
    "--allow-dangerously-skip-permissions",
];

/// Flags with any number of values: what follows is theirs up to the next flag.
const MANY: &[&str] = &[
    "--allowedTools",
    "--allowed-tools",
    "--disallowedTools",
    "--disallowed-tools",
    "--add-dir",
    "--mcp-config",
    "--tools",
    "--betas",
    "--plugin-dir",
];

#[derive(Debug)]
pub(super) struct Claude {
    ear: Ear,
    /// Where the prompt is all of standard input, or an argument.
    once: Option<Once>,
    /// Why nothing is done, in the CLI's words.
    refusal: Option<&'static str>,
    output: Output,
    in_turn: bool,
    said: String,
    denials: Vec<Value>,
    failed: bool,
    /// The request to interrupt the turn.
    interrupt: Option<String>,
}

impl Claude {
    pub(super) fn live(arguments: &Arguments) -> Self {
        let (ear, said, denials) = (Ear::default(), String::new(), Vec::new());
        let (output, in_turn, failed) = (Output::new(arguments), false, false);
        Self { ear, once: None, refusal: None, output, in_turn, said, denials, failed, interrupt: None }
    }

    pub(super) fn one_shot(arguments: &Arguments) -> Self {
        let live = Self::live(arguments);
        let refusal = live.output.refusal(arguments);
        Self { once: Some(Once::of(arguments.positional(ALONE, MANY))), refusal, ..live }
    }

    fn write(&mut self, script: &Script) -> io::Result<()> {
        self.output.script(script)
    }

    /// What a one-shot form gets; without a prompt it says so and exits.
    fn hear_once(&mut self, until: Option<Instant>) -> Option<Heard> {
        const NOTHING: &str =
            "Error: Input must be provided either through stdin or as a prompt argument when using --print";
        let heard = match self.refusal {
            Some(_) => Heard::End,
            None => self.once.as_mut()?.hear(until),
        };
        let without = matches!(&heard, Heard::Prompt(prompt) if prompt.trim().is_empty()).then_some(NOTHING);
        if let Some(refusal) = self.refusal.or(without) {
            _ = writeln!(io::stderr().lock(), "{refusal}");
            self.failed = true;
            return Some(Heard::End);
        }
        Some(heard)
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
                self.output.line(json!({"type": "control_response", "response": response}))?;
                None
            }
            (Some("control_response"), _) => Some(Heard::Answer(at(line, "/response/response/behavior") == "allow")),
            // The model hears it at once.
            (Some("user"), _) if self.in_turn => {
                let mut echo = line.clone();
                put(&mut echo, "isReplay", true.into());
                put(&mut echo, "session_id", self.output.session.as_str().into());
                self.output.line(echo)?;
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
        match self.hear_once(until) {
            Some(heard) => Ok(heard),
            None => hear_line(self, until, |tongue| &mut tongue.ear, Self::heard),
        }
    }

    fn shell(&self) -> &'static str {
        "Bash"
    }

    fn begin(&mut self, _prompt: &str) -> io::Result<()> {
        self.in_turn = true;
        self.output.begin_turn();
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
        if self.once.is_some() {
            return Ok(Asked::Nobody);
        }
        let request = json!({
            "subtype": "can_use_tool", "tool_name": call.name, "input": call.input, "tool_use_id": call.id,
            "permission_suggestions": [],
        });
        let id = format!("ask_{}", call.id);
        self.output.line(json!({"type": "control_request", "request_id": id, "request": request}))?;
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
