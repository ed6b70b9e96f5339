//! Selects the interface of a CLI that its arguments request.

use super::arguments::Arguments;
use super::error::ScenarioError;
use super::steps::{Step, ToolUse, Turn, split_mcp_name};
use super::{claude_output, gemini, version};

/// The interfaces of the CLIs that have a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CliInterface {
    /// Prints the version only.
    Version(version::Cli),
    Claude,
    ClaudeOneShot,
    CodexExec,
    CodexAppServer,
    Gemini,
    GeminiAcp,
    OpenCode,
    #[cfg(feature = "servers")]
    OpenCodeServe,
}

impl CliInterface {
    pub(super) fn of(agent: &str, arguments: &Arguments) -> Result<Self, ScenarioError> {
        let cli = version::Cli::of(agent).ok_or_else(|| ScenarioError::UnknownAgent(agent.to_owned()))?;
        if version::is_version_request(arguments.0.iter()) {
            return Ok(Self::Version(cli));
        }
        let has = |word: &str| arguments.has(word);
        let first = arguments.0.first().map(String::as_str);
        let wrong = |agent, supported| Err(ScenarioError::UnsupportedArguments { agent, supported });
        match cli {
            version::Cli::Claude => {
                claude_output::check(arguments)?;
                match arguments.value("--input-format") {
                    Some("stream-json") => Ok(Self::Claude),
                    _ if has("-p") || has("--print") => Ok(Self::ClaudeOneShot),
                    _ => wrong("claude", "-p (--print), or --input-format stream-json is required"),
                }
            }
            version::Cli::Codex if first == Some("exec") => Ok(Self::CodexExec),
            version::Cli::Codex if first == Some("app-server") => Ok(Self::CodexAppServer),
            version::Cli::Codex => wrong("codex", "the first argument must be exec or app-server"),
            version::Cli::Gemini if has("--acp") => Ok(Self::GeminiAcp),
            version::Cli::Gemini => {
                gemini::check(arguments)?;
                Ok(Self::Gemini)
            }
            version::Cli::OpenCode if first == Some("run") => Ok(Self::OpenCode),
            #[cfg(feature = "servers")]
            version::Cli::OpenCode if first == Some("serve") => Ok(Self::OpenCodeServe),
            version::Cli::OpenCode => wrong("opencode", "the first argument must be run or serve"),
        }
    }

    /// Checks that the interface can represent every step of the scenario: Codex has a separate
    /// item type for each kind of tool.
    pub(super) fn check(self, turns: &[Turn]) -> Result<(), ScenarioError> {
        if !matches!(self, Self::CodexExec | Self::CodexAppServer) {
            return Ok(());
        }
        for (at, turn) in turns.iter().enumerate() {
            for step in &turn.steps {
                if let Step::Tool(ToolUse { name, .. }) = step
                    && split_mcp_name(name).is_none()
                {
                    let (agent, supported) = ("codex", "mcp__SERVER__TOOL");
                    return Err(ScenarioError::UnsupportedTool { turn: at + 1, agent, name: name.clone(), supported });
                }
            }
        }
        Ok(())
    }
}
