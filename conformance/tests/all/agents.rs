//! The four agents, and what a scenario calls by another name on each.

use anyhow::Result;
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster_conformance::{Lab, Recording};
use teamster_testkit::provider::{Reply, Scenario, Usage};

/// An agent, and its shell tool.
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    shell: (&'static str, &'static str),
    /// Whether its vendor's API tells what goes into a cache.
    tells_cache_writes: bool,
}

pub(crate) const AGENTS: &[Agent] = &[
    Agent { name: "claude", shell: ("Bash", "command"), tells_cache_writes: true },
    Agent { name: "codex", shell: ("exec_command", "cmd"), tells_cache_writes: true },
    Agent { name: "gemini", shell: ("run_shell_command", "command"), tells_cache_writes: false },
    Agent { name: "opencode", shell: ("bash", "command"), tells_cache_writes: false },
];

impl Agent {
    pub(crate) async fn lab(&self, scenario: impl Into<Scenario>) -> Result<Lab> {
        match self.name {
            "claude" => Lab::claude(scenario).await,
            "codex" => Lab::codex(scenario).await,
            "gemini" => Lab::gemini(scenario).await,
            _ => Lab::opencode(scenario).await,
        }
    }

    pub(crate) fn request(&self, lab: &Lab, prompt: &str) -> RunRequest {
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
    pub(crate) fn reply(&self) -> Reply {
        let cache_write = if self.tells_cache_writes { 100 } else { 0 };
        Reply::new().usage(Usage { input: 25, cache_read: 50, cache_write, output: 40 })
    }

    /// A call of the agent's shell tool.
    pub(crate) fn shell(&self, command: &str) -> (&'static str, Value) {
        let (tool, argument) = self.shell;
        let input = match self.name {
            "codex" => json!({ argument: command }),
            _ => json!({ argument: command, "description": "Run a command" }),
        };
        (tool, input)
    }

    /// Usage means what the provider told, on every agent.
    pub(crate) fn check_usage(&self, lab: &Lab, recording: &Recording) {
        let usage = recording.result.usage.as_ref().unwrap();
        let told = lab.provider().usage_total();
        assert_eq!(usage.input_tokens, told.input, "{}: input", self.name);
        assert_eq!(usage.cache_read_tokens, Some(told.cache_read), "{}: read from the cache", self.name);
        assert_eq!(usage.cache_write_tokens.unwrap_or(0), told.cache_write, "{}: written to the cache", self.name);
        assert_eq!(usage.output_tokens, told.output, "{}: output", self.name);
    }
}
