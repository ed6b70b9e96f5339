//! The real Gemini CLI 0.61.0 under Teamster, against a provider that plays a scenario.

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

/// Returns a request with a model. With `auto`, the CLI asks a second model first.
fn request(env: &TestEnv, prompt: impl Into<String>) -> RunRequest {
    let mut request = env.request(prompt);
    request.model = Some("gemini-2.5-flash".to_owned());
    request
}

/// Allows all tools.
fn full(env: &TestEnv, prompt: impl Into<String>) -> RunRequest {
    in_mode(request(env, prompt), PermissionMode::Full)
}

fn in_mode(mut request: RunRequest, mode: PermissionMode) -> RunRequest {
    request.permissions.mode = mode;
    request
}

/// A model that calls one tool, and then answers `Done.`.
fn tool_then_text(tool: &str, input: Value) -> Scenario {
    Scenario::new().reply(Reply::new().tool(tool, input)).reply(Reply::new().text("Done."))
}

fn shell(command: &str) -> Value {
    json!({"command": command, "description": "Run a command"})
}

fn shell_then_text(command: &str) -> Scenario {
    tool_then_text("run_shell_command", shell(command))
}

/// Writes the user's settings, and returns their text.
fn user_settings(env: &TestEnv, text: &str) -> Result<String> {
    fs::create_dir_all(env.home().join(".gemini"))?;
    fs::write(env.home().join(".gemini/settings.json"), text)?;
    Ok(text.to_owned())
}

/// Switches off the CLI's retries, which take minutes.
fn one_attempt(env: &TestEnv) -> Result<String> {
    user_settings(env, "{\n  // mine\n  \"general\": {\"maxAttempts\": 1},\n}\n".replace("},\n}", "}\n}").as_str())
}

/// Returns the usage of a reply. The vendor's API has no number of cache writes.
fn usage() -> Usage {
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

/// Returns the caller's prompts of the conversation.
fn prompts(request: &ModelRequest) -> Vec<&str> {
    request.messages.iter().filter(|message| message.is_prompt()).flat_map(Message::texts).collect()
}
