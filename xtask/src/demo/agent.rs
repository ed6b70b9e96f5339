//! The agents of the demo: how each connects to the scripted model, with a made-up key.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;

use super::directory::DemoDirectory;

/// A key that no vendor knows.
const KEY: &str = "made-up-key";

/// An agent to watch.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Agent {
    Claude,
    Codex,
    Gemini,
    Opencode,
}

impl Agent {
    /// Returns the name in `teamster run --agent`, which is also the name of the command.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// Returns the name of the product.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "OpenCode",
        }
    }

    /// Returns the options that permit the command. Claude Code needs no permission for a command that only reads, and rejects full
    /// permissions for root. Gemini CLI would call another model first.
    pub(crate) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[],
            Self::Codex | Self::Opencode => &["--permission", "full"],
            Self::Gemini => &["--permission", "full", "--model", "gemini-2.5-flash"],
        }
    }

    /// Writes the configuration of the provider, and returns the variables.
    pub(crate) fn configure(self, directory: &DemoDirectory, provider: &str) -> Result<Vec<(&'static str, String)>> {
        Ok(match self {
            Self::Claude => vec![
                ("ANTHROPIC_BASE_URL", provider.to_owned()),
                ("ANTHROPIC_API_KEY", KEY.to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ],
            Self::Codex => {
                let folder = directory.home().join(".codex");
                fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
                let file = folder.join("config.toml");
                fs::write(&file, codex_config(provider)).with_context(|| format!("cannot write {}", file.display()))?;
                vec![("DEMO_API_KEY", KEY.to_owned())]
            }
            Self::Gemini => {
                vec![("GOOGLE_GEMINI_BASE_URL", provider.to_owned()), ("GEMINI_API_KEY", KEY.to_owned())]
            }
            Self::Opencode => vec![
                ("OPENCODE_CONFIG_CONTENT", opencode_config(provider)),
                ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
                ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
                ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
                // It would install a package in the background. No server listens on the discard port.
                ("npm_config_registry", "http://127.0.0.1:9/".to_owned()),
                ("npm_config_fetch_retries", "0".to_owned()),
            ],
        })
    }
}

fn codex_config(provider: &str) -> String {
    format!(
        r#"model = "gpt-5.5"
model_provider = "demo"

[model_providers.demo]
name = "demo"
base_url = "{provider}/v1"
wire_api = "responses"
env_key = "DEMO_API_KEY"

[features]
plugins = false
apps = false
shell_snapshot = false

[analytics]
enabled = false
"#
    )
}

fn opencode_config(provider: &str) -> String {
    let model = json!({"tool_call": true, "limit": {"context": 200_000, "output": 8192}});
    let config = json!({
        "model": "demo/demo",
        "small_model": "demo/demo",
        "share": "disabled",
        "provider": {"demo": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": format!("{provider}/v1"), "apiKey": KEY},
            "models": {"demo": model},
        }},
    });
    config.to_string()
}
