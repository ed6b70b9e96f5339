//! The real Claude Code 2.1.197 under Teamster, against a provider that plays a scenario.

#![expect(clippy::indexing_slicing, reason = "the lints take helpers of tests for library code")]

mod background;
mod batch;
mod context;
mod ending;
mod failures;
mod limits;
mod mcp;
mod permissions;
mod prompts;
mod schema;
mod steering;
mod subagents;
mod text;
mod tools;

use serde_json::{Value, json};
use teamster::request::PermissionMode;
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
fn tool_then_text(tool: &str, input: Value) -> Scenario {
    Scenario::new().reply(Reply::new().tool(tool, input)).reply(Reply::new().text("Done."))
}

/// A model that runs one command, and then answers `Done.`.
fn bash_then_text(command: &str) -> Scenario {
    tool_then_text("Bash", bash(command))
}

fn bash(command: &str) -> Value {
    json!({"command": command, "description": "Run a command"})
}

/// Allows all tools, for root too.
fn full(mut request: RunRequest) -> RunRequest {
    request.permissions.mode = PermissionMode::Full;
    request.env.insert("IS_SANDBOX".to_owned(), "1".to_owned());
    request
}

/// Switches off the CLI's own retries.
fn no_retries(mut request: RunRequest) -> RunRequest {
    request.env.insert("CLAUDE_CODE_MAX_RETRIES".to_owned(), "0".to_owned());
    request
}

/// Returns a text with ten bytes for each number, in which no part repeats.
fn numbers(count: usize) -> String {
    let numbers: Vec<String> = (0..count).map(|number| format!("{number:09}\n")).collect();
    numbers.concat()
}
