//! The four agents, and what a scenario calls by another name on each.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster_testkit::provider::{Reply, Scenario, Usage};

use crate::{Lab, Recording};

/// An agent, and its shell tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name in the registry.
    pub name: &'static str,
    /// The name on its box.
    pub title: &'static str,
    shell: (&'static str, &'static str),
    /// Whether its vendor's API tells what goes into a cache.
    tells_cache_writes: bool,
}

/// All of them.
pub const AGENTS: &[Agent] = &[
    Agent { name: "claude", title: "Claude Code", shell: ("Bash", "command"), tells_cache_writes: true },
    Agent { name: "codex", title: "Codex", shell: ("exec_command", "cmd"), tells_cache_writes: true },
    Agent { name: "gemini", title: "Gemini CLI", shell: ("run_shell_command", "command"), tells_cache_writes: false },
    Agent { name: "opencode", title: "OpenCode", shell: ("bash", "command"), tells_cache_writes: false },
];

impl Agent {
    /// A laboratory for it.
    ///
    /// # Errors
    /// When the CLI is not installed.
    pub async fn lab(&self, scenario: impl Into<Scenario>) -> Result<Lab> {
        match self.name {
            "claude" => Lab::claude(scenario).await,
            "codex" => Lab::codex(scenario).await,
            "gemini" => Lab::gemini(scenario).await,
            _ => Lab::opencode(scenario).await,
        }
    }

    /// A request that it takes from root, and that fails at the first failure of the model.
    pub fn request(&self, lab: &Lab, prompt: &str) -> RunRequest {
        let mut request = lab.request(prompt);
        match self.name {
            // As root it does everything only where it believes itself in a sandbox.
            "claude" => {
                request.env.insert("IS_SANDBOX".to_owned(), "1".to_owned());
                request.env.insert("CLAUDE_CODE_MAX_RETRIES".to_owned(), "0".to_owned());
            }
            // `auto` would ask another model first.
            "gemini" => request.model = Some("gemini-2.5-flash".to_owned()),
            _ => {}
        }
        request
    }

    /// An answer whose usage the vendor's API can tell.
    pub fn reply(&self) -> Reply {
        let cache_write = if self.tells_cache_writes { 100 } else { 0 };
        Reply::new().usage(Usage { input: 25, cache_read: 50, cache_write, output: 40 })
    }

    /// A call of the agent's shell tool.
    pub fn shell(&self, command: &str) -> (&'static str, Value) {
        let (tool, argument) = self.shell;
        let input = match self.name {
            "codex" => json!({ argument: command }),
            _ => json!({ argument: command, "description": "Run a command" }),
        };
        (tool, input)
    }

    /// Usage means what the provider told, on every agent.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_usage(&self, lab: &Lab, recording: &Recording) -> Result<()> {
        let usage = recording.result.usage.as_ref().context("no usage")?;
        let told = lab.provider().usage_total();
        let ours = [usage.input_tokens, usage.cache_read_tokens.unwrap_or(0), usage.output_tokens];
        ensure!(ours == [told.input, told.cache_read, told.output], "{}: {usage:?} instead of {told:?}", self.name);
        ensure!(usage.cache_read_tokens.is_some(), "{}: nothing said of the cache", self.name);
        let written = usage.cache_write_tokens.unwrap_or(0);
        ensure!(written == told.cache_write, "{}: wrote {written} to the cache, not {}", self.name, told.cache_write);
        Ok(())
    }
}
