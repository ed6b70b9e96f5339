//! What each CLI interface must implement to play a scenario.

use std::io;
use std::time::Instant;

use serde_json::{Map, Value};

/// An input from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostInput {
    /// Starts a turn.
    Prompt(String),
    /// Ends the turn.
    Interrupt,
    /// Allows or denies the tool call whose permission was requested.
    PermissionAnswer(bool),
    /// None arrived before the deadline.
    Timeout,
    /// The host has closed the input.
    Closed,
}

/// The output format and input format of one interface of a CLI.
pub(super) trait CliDialect {
    /// Waits for the host's next input, at most until the deadline. Other requests of the host are
    /// answered meanwhile.
    fn next_input(&mut self, deadline: Option<Instant>) -> io::Result<HostInput>;

    /// Returns the name of the tool that runs commands.
    fn shell_tool(&self) -> &'static str;

    fn start_turn(&mut self, prompt: &str) -> io::Result<()>;

    fn write_thinking(&mut self, text: &str) -> io::Result<()>;

    fn write_message(&mut self, text: &str) -> io::Result<()>;

    /// Writes the start of a tool call.
    fn start_tool_call(&mut self, call: &ToolCall) -> io::Result<()>;

    /// Requests permission, if the interface has such a request.
    fn request_permission(&mut self, call: &ToolCall) -> io::Result<PermissionRequest>;

    /// Writes a line of the output of a running command, if the interface reports it. `so_far` ends with the line.
    fn write_command_output(&mut self, _call: &ToolCall, _so_far: &str, _line: &str) -> io::Result<()> {
        Ok(())
    }

    /// Writes the result of a tool call.
    fn finish_tool_call(&mut self, call: &ToolCall, outcome: ToolOutcome<'_>) -> io::Result<()>;

    /// Writes the end of the turn.
    fn end_turn(&mut self, end: &TurnEnd) -> io::Result<()>;

    /// Returns the exit code to use when the host has closed the input.
    fn exit_code(&self) -> i32;
}

/// A tool call.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    /// Unique for each call of the process.
    pub(super) id: String,
    /// The agent's own name for the tool.
    pub(super) name: String,
    pub(super) input: Map<String, Value>,
    /// Whether the tool runs a command.
    pub(super) is_command: bool,
}

impl ToolCall {
    /// Returns the command that it runs.
    pub(super) fn command(&self) -> &str {
        self.input.get("command").and_then(Value::as_str).unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PermissionRequest {
    Sent,
    Unsupported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolOutcome<'a> {
    /// The tool returned this output. `exit` is the exit code of a command, or 1 if another tool
    /// failed.
    Done {
        output: &'a str,
        exit: i32,
    },
    Denied,
}

/// How a turn ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    Completed,
    Interrupted,
    Failed { status: u16, message: String },
}
