//! The real Codex 0.169.0 under Teamster, against a provider that plays a scenario.
//!
//! A run is one turn of the app-server. What differs in the one-shot form (`exec`) is tested in both.

#![expect(clippy::indexing_slicing, reason = "the lints take helpers of tests for library code")]

mod context;
mod conversations;
mod ending;
mod failures;
mod mcp;
mod permissions;
mod prompts;
mod sessions;
mod text;
mod tools;

use serde_json::{Value, json};
use teamster::request::{AgentInterface, PermissionMode};
use teamster::{RunRequest, RunResult};
use teamster_testkit::provider::{Reply, Scenario, Usage};

/// Returns the four numbers of a result's usage, for comparison with the provider's.
fn usage_of(result: &RunResult) -> Option<Usage> {
    let usage = result.usage.as_ref()?;
    Some(Usage {
        input: usage.input_tokens,
        cache_read: usage.cache_read_tokens.unwrap_or_default(),
        cache_write: usage.cache_write_tokens.unwrap_or_default(),
        output: usage.output_tokens,
    })
}

/// A model that calls one tool, and then answers `Done.`.
fn tool_then_text(tool: &str, input: impl Into<Value>) -> Scenario {
    Scenario::new().reply(Reply::new().tool(tool, input)).reply(Reply::new().text("Done."))
}

/// A model that runs one command, and then answers `Done.`.
fn shell_then_text(command: &str) -> Scenario {
    tool_then_text("exec_command", shell(command))
}

fn shell(command: &str) -> Value {
    json!({ "cmd": command })
}

/// Returns a patch that adds a file. The input of a custom tool is a string.
fn add_file(path: &str, line: &str) -> Value {
    Value::String(format!("*** Begin Patch\n*** Add File: {path}\n+{line}\n*** End Patch\n"))
}

fn mode(mut request: RunRequest, mode: PermissionMode) -> RunRequest {
    request.permissions.mode = mode;
    request
}

/// Selects the one-shot form.
fn exec(mut request: RunRequest) -> RunRequest {
    request.interface = AgentInterface::Exec;
    request
}

fn full(request: RunRequest) -> RunRequest {
    mode(request, PermissionMode::Full)
}

/// Returns a text with ten bytes for each number, in which no part repeats.
fn numbers(count: usize) -> String {
    let numbers: Vec<String> = (0..count).map(|number| format!("{number:09}\n")).collect();
    numbers.concat()
}
