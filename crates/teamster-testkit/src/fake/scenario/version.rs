//! The output of the CLIs for `--version`.

use std::io::{self, Write as _};

use teamster_agents::agent::Agent;
use teamster_agents::agent::claude::Claude;
use teamster_agents::agent::codex::Codex;
use teamster_agents::agent::gemini::Gemini;
use teamster_agents::agent::opencode::OpenCode;

/// A CLI that has a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cli {
    Claude,
    Codex,
    Gemini,
    OpenCode,
}

impl Cli {
    pub(super) fn of(agent: &str) -> Option<Self> {
        Some(match agent {
            "claude" => Self::Claude,
            "codex" => Self::Codex,
            "gemini" => Self::Gemini,
            "opencode" => Self::OpenCode,
            _ => return None,
        })
    }

    /// Returns the line that `--version` prints, with the version that the conformance tests run.
    fn line(self) -> String {
        let tested = |agent: &dyn Agent| agent.capabilities().map_or("", |capabilities| capabilities.tested_version);
        match self {
            Self::Claude => format!("{} (Claude Code)", tested(&Claude)),
            Self::Codex => format!("codex-cli {}", tested(&Codex)),
            Self::Gemini => tested(&Gemini).to_owned(),
            Self::OpenCode => tested(&OpenCode).to_owned(),
        }
    }
}

/// Returns whether the first argument requests the version.
pub(super) fn is_version_request<T: AsRef<str>>(mut arguments: impl Iterator<Item = T>) -> bool {
    arguments.next().is_some_and(|first| matches!(first.as_ref(), "--version" | "-v" | "-V"))
}

/// Prints the version and returns the exit code.
pub(super) fn print(cli: Cli) -> io::Result<i32> {
    writeln!(io::stdout().lock(), "{}", cli.line())?;
    Ok(0)
}

/// Answers these arguments if they request the version of this agent's CLI. Returns `None`
/// otherwise, and for an unknown agent.
///
/// # Errors
/// Fails if nothing reads the answer.
pub fn answer_version(agent: &str, arguments: &[std::ffi::OsString]) -> io::Result<Option<i32>> {
    match Cli::of(agent).filter(|_| is_version_request(arguments.iter().map(|argument| argument.to_string_lossy()))) {
        Some(cli) => print(cli).map(Some),
        None => Ok(None),
    }
}
