//! The real Gemini CLI 0.61.0 under Teamster, against a provider that plays a scenario. Each name is a promise.

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

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};
use teamster::request::PermissionMode;
use teamster::{RunRequest, RunResult};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario, Usage};

/// A request that runs the test environment's CLI with a model of its own: `auto` would ask another one first.
fn request(env: &TestEnv, prompt: impl Into<String>) -> RunRequest {
    let mut request = env.request(prompt);
    request.model = Some("gemini-2.5-flash".to_owned());
    request
}

/// Everything is allowed.
fn full(env: &TestEnv, prompt: impl Into<String>) -> RunRequest {
    in_mode(request(env, prompt), PermissionMode::Full)
}

fn in_mode(mut request: RunRequest, mode: PermissionMode) -> RunRequest {
    request.permissions.mode = mode;
    request
}

/// A model that calls one tool and then says `Done.`.
fn tool_then_text(tool: &str, input: Value) -> Scenario {
    Scenario::new().reply(Reply::new().tool(tool, input)).reply(Reply::new().text("Done."))
}

fn shell(command: &str) -> Value {
    json!({"command": command, "description": "Run a command"})
}

fn shell_then_text(command: &str) -> Scenario {
    tool_then_text("run_shell_command", shell(command))
}

/// Writes settings of the user's own, and gives their text.
fn user_settings(env: &TestEnv, text: &str) -> Result<String> {
    fs::create_dir_all(env.home().join(".gemini"))?;
    fs::write(env.home().join(".gemini/settings.json"), text)?;
    Ok(text.to_owned())
}

/// The first failure of a call is the last: otherwise the CLI goes on for minutes.
fn one_attempt(env: &TestEnv) -> Result<String> {
    user_settings(env, "{\n  // mine\n  \"general\": {\"maxAttempts\": 1},\n}\n".replace("},\n}", "}\n}").as_str())
}

/// What the provider told, where writing to a cache does not exist.
fn told() -> Usage {
    Usage { cache_write: 0, ..Usage::default() }
}

fn usage_of(result: &RunResult) -> Option<Usage> {
    let usage = result.usage.as_ref()?;
    Some(Usage {
        input: usage.input_tokens,
        cache_read: usage.cache_read_tokens.unwrap_or_default(),
        cache_write: usage.cache_write_tokens.unwrap_or_default(),
        output: usage.output_tokens,
    })
}

/// The user's prompts in a request's conversation.
fn prompts(request: &ModelRequest) -> Vec<&str> {
    request.messages.iter().filter(|message| message.is_prompt()).flat_map(Message::texts).collect()
}
