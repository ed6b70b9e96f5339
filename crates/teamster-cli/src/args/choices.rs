//! The values of options that are names.

use teamster::request::{AgentInterface, McpDelivery, ProjectTrust, PromptMode};

/// How much of the output of tools is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ToolOutput {
    None,
    Short,
    Full,
}

/// The permission mode of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Permission {
    ReadOnly,
    Ask,
    Edit,
    Full,
}

impl Permission {
    /// Returns the name, as the option and the API of the gateway have it.
    #[cfg(feature = "serve")]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Ask => "ask",
            Self::Edit => "edit",
            Self::Full => "full",
        }
    }
}

/// The way in which MCP servers are delivered to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Delivery {
    Auto,
    MergeRestore,
}

/// The interface of the CLI that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    Auto,
    Exec,
    Spawn,
}

/// Whether agent configuration in the working directory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trust {
    Trusted,
    Untrusted,
}

/// Whether the agent interprets the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Prompt {
    Agent,
    Literal,
}

impl From<Delivery> for McpDelivery {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::Auto => Self::Auto,
            Delivery::MergeRestore => Self::MergeRestore,
        }
    }
}

impl From<Mode> for AgentInterface {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Auto => Self::Auto,
            Mode::Exec => Self::Exec,
            Mode::Spawn => Self::Spawn,
        }
    }
}

impl From<Trust> for ProjectTrust {
    fn from(trust: Trust) -> Self {
        match trust {
            Trust::Trusted => Self::Trusted,
            Trust::Untrusted => Self::Untrusted,
        }
    }
}

impl From<Prompt> for PromptMode {
    fn from(prompt: Prompt) -> Self {
        match prompt {
            Prompt::Agent => Self::Agent,
            Prompt::Literal => Self::Literal,
        }
    }
}
