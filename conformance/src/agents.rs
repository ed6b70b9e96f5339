//! The four agents, and the agent's names for the parts of a scenario.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::RunResult;
use teamster_testkit::provider::{Reply, Usage};

/// An agent, and the names of its tools.
#[derive(Debug, PartialEq, Eq)]
pub struct Agent {
    /// The name in the registry.
    pub name: &'static str,
    /// The name of the product.
    pub title: &'static str,
    /// The name of the shell tool, and its argument for the command.
    shell: (&'static str, &'static str),
    /// The name of an MCP tool as the model sees it: the prefix, the separator of server and tool, and the substitute for
    /// a character that is not permitted in a server's name.
    mcp: (&'static str, &'static str, &'static str),
    /// Whether the vendor's API reports cache writes.
    reports_cache_writes: bool,
}

/// All four agents.
pub const AGENTS: &[Agent] = &[
    Agent {
        name: "claude",
        title: "Claude Code",
        shell: ("Bash", "command"),
        mcp: ("mcp__", "__", "_"),
        reports_cache_writes: true,
    },
    Agent {
        name: "codex",
        title: "Codex",
        shell: ("exec_command", "cmd"),
        mcp: ("mcp__", "/", "_"),
        reports_cache_writes: true,
    },
    Agent {
        name: "gemini",
        title: "Gemini CLI",
        shell: ("run_shell_command", "command"),
        mcp: ("mcp_", "_", "-"),
        reports_cache_writes: false,
    },
    Agent {
        name: "opencode",
        title: "OpenCode",
        shell: ("bash", "command"),
        mcp: ("", "_", "-"),
        reports_cache_writes: false,
    },
];

impl Agent {
    /// Returns the agent with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<&'static Self> {
        AGENTS.iter().find(|agent| agent.name == name).with_context(|| format!("no agent {name:?}"))
    }

    /// Returns an empty reply with a usage that the vendor's API can report.
    pub fn reply(&self) -> Reply {
        let cache_write = if self.reports_cache_writes { 100 } else { 0 };
        Reply::new().usage(Usage { input: 25, cache_read: 50, cache_write, output: 40 })
    }

    /// Returns a call of the agent's shell tool.
    pub fn shell(&self, command: &str) -> (&'static str, Value) {
        let (tool, argument) = self.shell;
        let input = match self.name {
            "codex" => json!({ argument: command }),
            _ => json!({ argument: command, "description": "Run a command" }),
        };
        (tool, input)
    }

    /// Returns the name by which the model calls a tool of an MCP server. The server's name consists of letters, digits,
    /// dots and underscores.
    pub fn mcp_tool(&self, server: &str, tool: &str) -> String {
        let (prefix, separator, substitute) = self.mcp;
        format!("{prefix}{}{separator}{tool}", server.replace(['.', '_'], substitute))
    }

    /// Adds an MCP server to the user's configuration, and returns its file. The server is a program without arguments.
    ///
    /// # Errors
    /// If the user's file cannot be written.
    pub fn add_user_server(&self, home: &Path, server: &str, program: &str) -> Result<PathBuf> {
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
        fs::create_dir_all(path.parent().context("a file in the home")?)?;
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Checks that a result has the usage that the provider reported.
    ///
    /// # Errors
    /// If a number differs.
    pub fn check_usage(&self, expected: Usage, result: &RunResult) -> Result<()> {
        let usage = result.usage.as_ref().context("no usage")?;
        let ours = [usage.input_tokens, usage.cache_read_tokens.unwrap_or(0), usage.output_tokens];
        ensure!(ours == [expected.input, expected.cache_read, expected.output], "{usage:?} instead of {expected:?}");
        ensure!(usage.cache_read_tokens.is_some(), "no number of tokens read from the cache");
        let written = usage.cache_write_tokens.unwrap_or(0);
        ensure!(written == expected.cache_write, "{written} tokens written to the cache, not {}", expected.cache_write);
        Ok(())
    }
}
