//! The real OpenCode 1.18.33 under Teamster, against a provider that plays a scenario.

mod conversations;
mod ending;
mod failures;
mod permissions;
mod prompts;
mod sessions;
mod text;
mod tools;
mod trust;

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

/// The vendor's API has no number of cache writes.
const USAGE: Usage = Usage { input: 25, cache_read: 50, cache_write: 0, output: 40 };

/// Returns an empty reply with a usage that the vendor's API can report.
fn reply() -> Reply {
    Reply::new().usage(USAGE)
}

/// A model that calls one tool, and then answers `Done.`.
fn tool_then_text(tool: &str, input: Value) -> Scenario {
    Scenario::new().reply(reply().tool(tool, input)).reply(reply().text("Done."))
}

/// A model that runs one command, and then answers `Done.`.
fn bash_then_text(command: &str) -> Scenario {
    tool_then_text("bash", bash(command))
}

fn bash(command: &str) -> Value {
    json!({"command": command, "description": "Run a command"})
}

/// Allows all tools.
fn full(request: RunRequest) -> RunRequest {
    mode(request, PermissionMode::Full)
}

fn mode(mut request: RunRequest, mode: PermissionMode) -> RunRequest {
    request.permissions.mode = mode;
    request
}

/// Returns a text with ten bytes for each number, in which no part repeats.
fn numbers(count: usize) -> String {
    let numbers: Vec<String> = (0..count).map(|number| format!("{number:09}\n")).collect();
    numbers.concat()
}
