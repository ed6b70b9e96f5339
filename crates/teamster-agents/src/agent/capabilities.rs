//! What an agent can do, as data: checked before a run, shown by the command, and the source of `docs/agents.md`.
//!
//! An option that an agent does not support is an error where the run would not be what was asked for, and a warning where
//! it still makes sense. Which of the two stands in the agent's table, not in its code.

use super::{FailureRow, OwnKeys};
use teamster_types::event::{Warning, WarningCode};
use teamster_types::request::{
    Conversation, McpDelivery, McpTransport, OutputMode, PermissionMode, ProjectTrust, PromptMode, RequestError,
    RunRequest, UserMcpServers,
};

/// Something that a request can ask for and an agent may not be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Feature {
    /// A model by name.
    Model,
    /// How hard the model thinks.
    Effort,
    /// Another system prompt.
    SystemPrompt,
    /// More system prompt.
    AppendSystemPrompt,
    /// Files with the prompt.
    Attachments,
    /// An answer that follows a JSON schema.
    Schema,
    /// Going on with a session.
    Resume,
    /// A new session with the history of another.
    Fork,
    /// Going on with the newest session.
    Continue,
    /// Permission mode `read-only`.
    ReadOnly,
    /// Permission mode `ask`.
    Ask,
    /// Permission mode `edit`.
    Edit,
    /// Permission mode `full`.
    Full,
    /// Tools that are allowed by name.
    AllowTools,
    /// Tools that are denied by name.
    DenyTools,
    /// A limit of turns.
    MaxTurns,
    /// A limit of cost, of a run or a session's turn.
    MaxBudget,
    /// A limit of cost of a whole session.
    MaxSessionBudget,
    /// A limit of tokens, of a run or a session's turn.
    MaxTokens,
    /// A limit of tokens of a whole session.
    MaxSessionTokens,
    /// More directories.
    AddDirs,
    /// MCP servers of the run.
    McpServers,
    /// MCP servers of the older HTTP + SSE transport.
    McpSse,
    /// MCP servers without which the run fails.
    McpRequired,
    /// MCP servers of which the model gets some tools only.
    McpEnabledTools,
    /// MCP servers of which the model does not get some tools.
    McpDisabledTools,
    /// How long MCP servers and their tools may take.
    McpTimeouts,
    /// No MCP servers but those of the run.
    McpStrict,
    /// MCP servers of the run, by the user's own configuration file.
    McpMergeRestore,
    /// Answers message by message.
    Messages,
    /// One document at the end.
    Batch,
    /// A working directory whose agent configuration is not used.
    UntrustedProject,
    /// A prompt that the agent does not interpret.
    LiteralPrompt,
    /// Work in the background of a session, after which the agent begins turns by itself.
    BackgroundTasks,
}

impl Feature {
    /// All of them, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::Model,
        Self::Effort,
        Self::SystemPrompt,
        Self::AppendSystemPrompt,
        Self::Attachments,
        Self::Schema,
        Self::Resume,
        Self::Fork,
        Self::Continue,
        Self::ReadOnly,
        Self::Ask,
        Self::Edit,
        Self::Full,
        Self::AllowTools,
        Self::DenyTools,
        Self::MaxTurns,
        Self::MaxBudget,
        Self::MaxSessionBudget,
        Self::MaxTokens,
        Self::MaxSessionTokens,
        Self::AddDirs,
        Self::McpServers,
        Self::McpSse,
        Self::McpRequired,
        Self::McpEnabledTools,
        Self::McpDisabledTools,
        Self::McpTimeouts,
        Self::McpStrict,
        Self::McpMergeRestore,
        Self::Messages,
        Self::Batch,
        Self::UntrustedProject,
        Self::LiteralPrompt,
        Self::BackgroundTasks,
    ];

    /// The option's name, as the command has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "--model",
            Self::Effort => "--effort",
            Self::SystemPrompt => "--system-prompt",
            Self::AppendSystemPrompt => "--append-system-prompt",
            Self::Attachments => "--attach",
            Self::Schema => "--schema",
            Self::Resume => "--resume",
            Self::Fork => "--fork",
            Self::Continue => "--continue",
            Self::ReadOnly => "--permission read-only",
            Self::Ask => "--permission ask",
            Self::Edit => "--permission edit",
            Self::Full => "--permission full",
            Self::AllowTools => "--allow-tool",
            Self::DenyTools => "--deny-tool",
            Self::MaxTurns => "--max-turns",
            Self::MaxBudget => "--max-budget",
            Self::MaxSessionBudget => "--max-session-budget",
            Self::MaxTokens => "--max-tokens",
            Self::MaxSessionTokens => "--max-session-tokens",
            Self::AddDirs => "--add-dir",
            Self::McpServers => "--mcp-config",
            Self::McpSse => "--mcp-config: type sse",
            Self::McpRequired => "--mcp-config: required",
            Self::McpEnabledTools => "--mcp-config: enabledTools",
            Self::McpDisabledTools => "--mcp-config: disabledTools",
            Self::McpTimeouts => "--mcp-config: timeouts",
            Self::McpStrict => "--mcp-strict",
            Self::McpMergeRestore => "--mcp-delivery merge-restore",
            Self::Messages => "--whole-messages",
            Self::Batch => "--batch",
            Self::UntrustedProject => "--project-trust untrusted",
            Self::LiteralPrompt => "--prompt-mode literal",
            Self::BackgroundTasks => "--background-tasks",
        }
    }

    /// Whether the request asks for it.
    pub fn is_asked_by(self, request: &RunRequest) -> bool {
        let mode = request.permissions.mode;
        let servers = || request.mcp_servers.values();
        match self {
            Self::Model => request.model.is_some(),
            Self::Effort => request.effort.is_some(),
            Self::SystemPrompt => request.system_prompt.is_some(),
            Self::AppendSystemPrompt => request.append_system_prompt.is_some(),
            Self::Attachments => !request.attachments.is_empty(),
            Self::Schema => request.schema.is_some(),
            Self::Resume => matches!(request.conversation, Conversation::Resume(_)),
            Self::Fork => matches!(request.conversation, Conversation::Fork(_)),
            Self::Continue => matches!(request.conversation, Conversation::Continue),
            Self::ReadOnly => mode == PermissionMode::ReadOnly,
            Self::Ask => mode == PermissionMode::Ask,
            Self::Edit => mode == PermissionMode::Edit,
            Self::Full => mode == PermissionMode::Full,
            Self::AllowTools => !request.permissions.allow.is_empty(),
            Self::DenyTools => !request.permissions.deny.is_empty(),
            Self::MaxTurns => request.max_turns.is_some(),
            Self::MaxBudget => request.max_budget_usd.is_some(),
            Self::MaxSessionBudget => request.max_session_budget_usd.is_some(),
            Self::MaxTokens => request.max_tokens.is_some(),
            Self::MaxSessionTokens => request.max_session_tokens.is_some(),
            Self::AddDirs => !request.add_dirs.is_empty(),
            Self::McpServers => !request.mcp_servers.is_empty(),
            Self::McpSse => servers().any(|server| matches!(server.transport, McpTransport::Sse(_))),
            Self::McpRequired => servers().any(|server| server.required),
            Self::McpEnabledTools => servers().any(|server| server.enabled_tools.is_some()),
            Self::McpDisabledTools => servers().any(|server| !server.disabled_tools.is_empty()),
            Self::McpTimeouts => {
                servers().any(|server| server.startup_timeout.is_some() || server.tool_timeout.is_some())
            }
            Self::McpStrict => request.user_mcp_servers == UserMcpServers::LeftOut,
            Self::McpMergeRestore => request.mcp_delivery == McpDelivery::MergeRestore,
            Self::Messages => request.output == OutputMode::Messages,
            Self::Batch => request.output == OutputMode::Batch,
            Self::UntrustedProject => request.project_trust == ProjectTrust::Untrusted,
            Self::LiteralPrompt => request.prompt_mode == PromptMode::Literal,
            Self::BackgroundTasks => request.background_tasks,
        }
    }
}

/// Whether an agent can do something, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Yes, by this means.
    Yes(&'static str),
    /// No, for this reason; the run goes on without it and says so in a warning.
    Ignored(&'static str),
    /// No, for this reason; the request is refused.
    Refused(&'static str),
}

/// What an agent can do, and what is known of its CLI.
#[derive(Debug)]
pub struct Capabilities {
    /// The CLI's program.
    pub program: &'static str,
    /// The version that the conformance tests run.
    pub tested_version: &'static str,
    /// The npm package that installs it.
    pub package: &'static str,
    /// Variables that hold credentials: any one of them will do.
    pub credential_variables: &'static [&'static str],
    /// Variables that carry the agent's own credentials, and when they do: all others can be withheld from it.
    pub own_keys: &'static [OwnKeys],
    /// Variables that say where its home and its configuration are: inherited in any case.
    pub home_variables: &'static [&'static str],
    /// Files under the user's home that hold credentials after a login.
    pub credential_files: &'static [&'static str],
    /// Each feature, in the order of [`Feature::ALL`]; what is not listed is refused.
    pub features: &'static [(Feature, Support)],
    /// Each type of event that it can give beside `error` and `done`, with how it comes.
    pub events: &'static [(&'static str, &'static str)],
    /// What its failures mean.
    pub failures: &'static [FailureRow],
}

impl Capabilities {
    /// Whether and how the agent can do it.
    pub fn support(&self, feature: Feature) -> Support {
        let found = self.features.iter().find(|(other, _)| *other == feature);
        found.map_or(Support::Refused("the agent does not have it"), |(_, support)| *support)
    }

    /// Checks a request: a warning for each option that will be ignored.
    ///
    /// # Errors
    /// For the first option that cannot be honoured and without which the run would not be what was asked for.
    pub fn check(&self, agent: &str, request: &RunRequest) -> Result<Vec<Warning>, RequestError> {
        self.check_keys(agent, request)?;
        let mut warnings = Vec::new();
        for feature in Feature::ALL.iter().filter(|feature| feature.is_asked_by(request)) {
            match self.support(*feature) {
                Support::Yes(_) => {}
                Support::Ignored(why) => {
                    let text = format!("{agent} does not support {}: {why}", feature.name());
                    warnings.push(Warning::new(WarningCode::OptionIgnored, text).with("option", feature.name()));
                }
                Support::Refused(why) => {
                    return Err(RequestError::Unsupported {
                        agent: agent.to_owned(),
                        option: feature.name(),
                        why: why.to_owned(),
                    });
                }
            }
        }
        Ok(warnings)
    }
}
