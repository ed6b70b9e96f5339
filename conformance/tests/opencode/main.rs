//! The real OpenCode 1.18.33 under Teamster, against a provider that plays a scenario. Each name is a promise.

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

/// The four numbers of a usage, for comparison with the provider's.
fn usage_of(result: &RunResult) -> Option<Usage> {
    let usage = result.usage.as_ref()?;
    Some(Usage {
        input: usage.input_tokens,
        cache_read: usage.cache_read_tokens.unwrap_or_default(),
        cache_write: usage.cache_write_tokens.unwrap_or_default(),
        output: usage.output_tokens,
    })
}

/// The API does not tell what goes into a cache.
const USAGE: Usage = Usage { input: 25, cache_read: 50, cache_write: 0, output: 40 };

/// An answer whose usage the API can tell.
fn reply() -> Reply {
    Reply::new().usage(USAGE)
}

/// A model that calls one tool and then says `Done.`.
fn tool_then_text(tool: &str, input: Value) -> Scenario {
    Scenario::new().reply(reply().tool(tool, input)).reply(reply().text("Done."))
}

/// A model that runs one command and then says `Done.`.
fn bash_then_text(command: &str) -> Scenario {
    tool_then_text("bash", bash(command))
}

fn bash(command: &str) -> Value {
    json!({"command": command, "description": "Run a command"})
}

/// Everything is allowed.
fn full(request: RunRequest) -> RunRequest {
    mode(request, PermissionMode::Full)
}

fn mode(mut request: RunRequest, mode: PermissionMode) -> RunRequest {
    request.permissions.mode = mode;
    request
}

/// A text of ten bytes for each number, in which no part is like another.
fn numbers(count: usize) -> String {
    let numbers: Vec<String> = (0..count).map(|number| format!("{number:09}\n")).collect();
    numbers.concat()
}
