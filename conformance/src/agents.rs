//! The four agents, and what a scenario calls by another name on each.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster_testkit::provider::{Reply, Scenario, Usage};

use crate::{Recording, TestEnv};

/// An agent, and its shell tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name in the registry.
    pub name: &'static str,
    /// The name on its box.
    pub title: &'static str,
    shell: (&'static str, &'static str),
    /// What the model's name of an MCP tool begins with, what stands between server and tool, and what stands for a
    /// character that a server's name cannot have.
    mcp: (&'static str, &'static str, &'static str),
    /// Whether its vendor's API tells what goes into a cache.
    tells_cache_writes: bool,
}

/// All of them.
pub const AGENTS: &[Agent] = &[
    Agent {
        name: "claude",
        title: "Claude Code",
        shell: ("Bash", "command"),
        mcp: ("mcp__", "__", "_"),
        tells_cache_writes: true,
    },
    Agent {
        name: "codex",
        title: "Codex",
        shell: ("exec_command", "cmd"),
        mcp: ("mcp__", "/", "_"),
        tells_cache_writes: true,
    },
    Agent {
        name: "gemini",
        title: "Gemini CLI",
        shell: ("run_shell_command", "command"),
        mcp: ("mcp_", "_", "-"),
        tells_cache_writes: false,
    },
    Agent {
        name: "opencode",
        title: "OpenCode",
        shell: ("bash", "command"),
        mcp: ("", "_", "-"),
        tells_cache_writes: false,
    },
];

impl Agent {
    /// A laboratory for it.
    ///
    /// # Errors
    /// When the CLI is not installed.
    pub async fn lab(&self, scenario: impl Into<Scenario>) -> Result<TestEnv> {
        match self.name {
            "claude" => TestEnv::claude(scenario).await,
            "codex" => TestEnv::codex(scenario).await,
            "gemini" => TestEnv::gemini(scenario).await,
            _ => TestEnv::opencode(scenario).await,
        }
    }

    /// A request that it takes from root, and that fails at the first failure of the model.
    pub fn request(&self, lab: &TestEnv, prompt: &str) -> RunRequest {
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

    /// How its model calls a tool of an MCP server, whose name consists of letters, digits, dots and underscores.
    pub fn mcp_tool(&self, server: &str, tool: &str) -> String {
        let (prefix, separator, filler) = self.mcp;
        format!("{prefix}{}{separator}{tool}", server.replace(['.', '_'], filler))
    }

    /// Gives its user an MCP server of this name, that is a program without arguments.
    ///
    /// # Errors
    /// When the user's file cannot be written.
    pub fn add_user_server(&self, lab: &TestEnv, server: &str, program: &str) -> Result<PathBuf> {
        let home = lab.home();
        let servers = json!({"mcpServers": {server: {"command": program}}}).to_string();
        let (file, text) = match self.name {
            "claude" => (".claude.json", servers),
            "codex" => {
                let text = fs::read_to_string(home.join(".codex/config.toml"))?;
                (".codex/config.toml", format!("{text}\n[mcp_servers.{server}] # mine\ncommand = {}\n", json!(program)))
            }
            "gemini" => (".gemini/settings.json", format!("// mine\n{servers}")),
            _ => {
                let server = json!({server: {"type": "local", "command": [program]}});
                (".config/opencode/opencode.json", format!("// mine\n{}", json!({"mcp": server})))
            }
        };
        let path = home.join(file);
        fs::create_dir_all(path.parent().context("a file of the home")?)?;
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Usage means what the provider told, on every agent.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_usage(&self, lab: &TestEnv, recording: &Recording) -> Result<()> {
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
