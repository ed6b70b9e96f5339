//! The protocols of the fake CLI.

/// The protocol of the fake CLI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Claude,
    CodexExec,
    CodexApp,
    Acp,
}

impl Form {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::CodexExec => "codex-exec",
            Self::CodexApp => "codex-app",
            Self::Acp => "acp",
        }
    }

    /// Returns the name of Teamster's agent, of the fake CLI's file and of its protocol.
    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::CodexExec | Self::CodexApp => "codex",
            Self::Acp => "acp",
        }
    }
}
