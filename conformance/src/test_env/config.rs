//! The user configuration of each agent, which names the test's provider.

use serde_json::{Value, json};

/// The API key, which no vendor accepts.
pub(super) const KEY: &str = "sk-made-up-for-tests";

/// Returns Codex's configuration: a provider with few retries, and no features that contact other hosts.
pub(super) fn codex(url: &str) -> String {
    format!(
        r#"model = "gpt-5.5"
model_provider = "test"

[model_providers.test]
name = "test"
base_url = "{url}"
wire_api = "responses"
env_key = "TEST_API_KEY"
request_max_retries = 1
stream_max_retries = 1

[features]
plugins = false
apps = false
shell_snapshot = false

[analytics]
enabled = false
"#
    )
}

/// Returns OpenCode's configuration. Prices are in dollars per million tokens.
pub(super) fn opencode(base_url: &str) -> Value {
    let model = json!({
        "tool_call": true,
        "reasoning": true,
        "attachment": true,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": {"context": 1_000_000, "output": 8192},
        "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
    });
    json!({
        "model": "test/m1",
        "small_model": "test/m1",
        "share": "disabled",
        "provider": {"test": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": format!("{base_url}/v1"), "apiKey": KEY},
            "models": {"m1": model, "m2": model},
        }},
    })
}
