//! Claude Code's interfaces: stream-json input and output with the control protocol, and one-shot
//! with text, JSON or stream-json output.

use std::io::{self, Write as _};
use std::time::Instant;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::claude_output::Output;
use super::dialect::{CliDialect, HostInput, PermissionRequest, ToolCall, ToolOutcome, TurnEnd};
use super::input::{JsonInput, OneShotInput, next_json_input};
use super::json::{at, put, text_of};
use crate::fake::script::{Script, Step};

/// Flags without a value.
const FLAGS_WITHOUT_VALUE: &[&str] = &[
    "-p",
    "--print",
    "--verbose",
    "--include-partial-messages",
    "--dangerously-skip-permissions",
    "--fork-session",
    "-c",
    "--continue",
    "--strict-split_mcp_name-config",
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

/// Flags with any number of values, up to the next flag.
const FLAGS_WITH_MANY_VALUES: &[&str] = &[
    "--allowedTools",
    "--allowed-tools",
    "--disallowedTools",
    "--disallowed-tools",
    "--add-dir",
    "--split_mcp_name-config",
    "--tools",
    "--betas",
    "--plugin-dir",
];

#[derive(Debug)]
pub(super) struct Claude {
    input: JsonInput,
    /// Set if the prompt is an argument or all of stdin.
    once: Option<OneShotInput>,
    /// The CLI's error message for arguments that it rejects.
    refusal: Option<&'static str>,
    output: Output,
    in_turn: bool,
    answer: String,
    denials: Vec<Value>,
    failed: bool,
    /// The id of the pending interrupt request.
    interrupt: Option<String>,
}

impl Claude {
    pub(super) fn live(arguments: &Arguments) -> Self {
        let (input, answer, denials) = (JsonInput::default(), String::new(), Vec::new());
        let (output, in_turn, failed) = (Output::new(arguments), false, false);
        Self { input, once: None, refusal: None, output, in_turn, answer, denials, failed, interrupt: None }
    }

    pub(super) fn one_shot(arguments: &Arguments) -> Self {
        let live = Self::live(arguments);
        let refusal = live.output.refusal(arguments);
        Self {
            once: Some(OneShotInput::of(arguments.positional(FLAGS_WITHOUT_VALUE, FLAGS_WITH_MANY_VALUES))),
            refusal,
            ..live
        }
    }

    fn write(&mut self, script: &Script) -> io::Result<()> {
        self.output.script(script)
    }

    /// Returns the input of a one-shot run. Without a prompt it prints an error and ends.
    fn next_one_shot_input(&mut self, deadline: Option<Instant>) -> Option<HostInput> {
        const NOTHING: &str =
            "Error: Input must be provided either through stdin or as a prompt argument when using --print";
        let input = match self.refusal {
            Some(_) => HostInput::Closed,
            None => self.once.as_mut()?.next_input(deadline),
        };
        let without = matches!(&input, HostInput::Prompt(prompt) if prompt.trim().is_empty()).then_some(NOTHING);
        if let Some(refusal) = self.refusal.or(without) {
            _ = writeln!(io::stderr().lock(), "{refusal}");
            self.failed = true;
            return Some(HostInput::Closed);
        }
        Some(input)
    }

    /// Handles a line from the host. Returns the input for the scenario, if it is one.
    fn handle_line(&mut self, line: &Value) -> io::Result<Option<HostInput>> {
        let request = at(line, "/request");
        Ok(match (at(line, "/type").as_str(), at(request, "/subtype").as_str()) {
            (Some("control_request"), Some("interrupt")) if self.in_turn => {
                self.interrupt = at(line, "/request_id").as_str().map(str::to_owned);
                Some(HostInput::Interrupt)
            }
            (Some("control_request"), _) => {
                let response = json!({"subtype": "success", "request_id": at(line, "/request_id"), "response": {}});
                self.output.line(json!({"type": "control_response", "response": response}))?;
                None
            }
            (Some("control_response"), _) => {
                Some(HostInput::PermissionAnswer(at(line, "/response/response/behavior") == "allow"))
            }
            // The model receives it at once.
            (Some("user"), _) if self.in_turn => {
                let mut echo = line.clone();
                put(&mut echo, "isReplay", true.into());
                put(&mut echo, "session_id", self.output.session.as_str().into());
                self.output.line(echo)?;
                None
            }
            (Some("user"), _) => {
                let content = at(line, "/message/content");
                Some(HostInput::Prompt(content.as_str().map_or_else(|| text_of(content), str::to_owned)))
            }
            _ => None,
        })
    }
}

impl CliDialect for Claude {
    fn next_input(&mut self, deadline: Option<Instant>) -> io::Result<HostInput> {
        match self.next_one_shot_input(deadline) {
            Some(input) => Ok(input),
            None => next_json_input(self, deadline, |dialect| &mut dialect.input, Self::handle_line),
        }
    }

    fn shell_tool(&self) -> &'static str {
        "Bash"
    }

    fn start_turn(&mut self, _prompt: &str) -> io::Result<()> {
        self.in_turn = true;
        self.output.start_turn();
        self.answer.clear();
        self.denials.clear();
        self.write(&Script::new().claude_init())
    }

    fn write_thinking(&mut self, text: &str) -> io::Result<()> {
        self.write(&Script::new().claude_thinking(text))
    }

    fn write_message(&mut self, text: &str) -> io::Result<()> {
        text.clone_into(&mut self.answer);
        self.write(&Script::new().claude_text(text))
    }

    fn start_tool_call(&mut self, call: &ToolCall) -> io::Result<()> {
        let input = Value::Object(call.input.clone());
        self.write(&Script::new().claude_tool(&call.id, &call.name, &input))
    }

    fn request_permission(&mut self, call: &ToolCall) -> io::Result<PermissionRequest> {
        if self.once.is_some() {
            return Ok(PermissionRequest::Unsupported);
        }
        let request = json!({
            "subtype": "can_use_tool", "tool_name": call.name, "input": call.input, "tool_use_id": call.id,
            "permission_suggestions": [],
        });
        let id = format!("ask_{}", call.id);
        self.output.line(json!({"type": "control_request", "request_id": id, "request": request}))?;
        Ok(PermissionRequest::Sent)
    }

    fn finish_tool_call(&mut self, call: &ToolCall, outcome: ToolOutcome<'_>) -> io::Result<()> {
        let script = match outcome {
            ToolOutcome::Done { output, exit: 0 } => Script::new().claude_tool_result(&call.id, output),
            ToolOutcome::Done { output, exit } if call.is_command => {
                Script::new().claude_tool_failed(&call.id, &format!("Exit code {exit}\n{output}"))
            }
            ToolOutcome::Done { output, .. } => Script::new().claude_tool_failed(&call.id, output),
            ToolOutcome::Denied => {
                let denial = json!({"tool_name": call.name, "tool_use_id": call.id, "tool_input": call.input});
                self.denials.push(denial);
                Script::new().claude_tool_failed(&call.id, "The user doesn't want to take this action right now.")
            }
        };
        self.write(&script)
    }

    fn end_turn(&mut self, end: &TurnEnd) -> io::Result<()> {
        self.in_turn = false;
        self.failed = *end != TurnEnd::Completed;
        let script = match end {
            TurnEnd::Completed => Script::new().claude_result(&self.answer),
            TurnEnd::Interrupted => Script::new().claude_interrupted(),
            TurnEnd::Failed { status, message } => Script::new().claude_api_error(*status, message),
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
