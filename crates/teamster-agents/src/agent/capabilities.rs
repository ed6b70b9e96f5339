//! What an agent can do, as data. Requests are checked against it; the command and `docs/agents.md` show it.
//!
//! An option that an agent does not support is an error if the run would differ from the request in substance. It is a
//! warning if the run is still useful. The agent's table decides which, not its code.

use super::failure::FailureRow;
use super::keys::{self, OwnKeys};
use teamster_types::event::{Warning, WarningCode};
use teamster_types::request::{
    Conversation, McpDelivery, McpTransport, OutputMode, PermissionMode, ProjectTrust, PromptMode, RequestError,
    RunRequest, UserMcpServers,
};

/// A feature of requests that an agent may not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Feature {
    /// A model by name.
    Model,
    /// The model's reasoning effort.
    Effort,
    /// A system prompt that replaces the agent's own.
    SystemPrompt,
    /// Text that is appended to the system prompt.
    AppendSystemPrompt,
    /// Files that are attached to the prompt.
    Attachments,
    /// An answer that matches a JSON schema.
    Schema,
    /// Resuming a session.
    Resume,
    /// A new session with the history of another one.
    Fork,
    /// Resuming the newest session.
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
    /// A maximum number of turns.
    MaxTurns,
    /// A maximum cost of a run, or of each turn of a session.
    MaxBudget,
    /// A maximum cost of a whole session.
    MaxSessionBudget,
    /// A maximum number of tokens of a run, or of each turn of a session.
    MaxTokens,
    /// A maximum number of tokens of a whole session.
    MaxSessionTokens,
    /// Further directories that the agent may use.
    AddDirs,
    /// MCP servers of the run.
    McpServers,
    /// MCP servers with the older HTTP + SSE transport.
    McpSse,
    /// MCP servers that must start, or the run fails.
    McpRequired,
    /// MCP servers of which the model receives only the listed tools.
    McpEnabledTools,
    /// MCP servers of which the model does not receive the listed tools.
    McpDisabledTools,
    /// Timeouts of MCP servers and their tools.
    McpTimeouts,
    /// No MCP servers except those of the run.
    McpStrict,
    /// MCP servers of the run that are merged into the user's configuration file and removed after the run.
    McpMergeRestore,
    /// Whole messages instead of deltas.
    Messages,
    /// One document at the end of the run.
    Batch,
    /// A working directory whose configuration of the agent is ignored.
    UntrustedProject,
    /// A prompt that the agent does not interpret.
    LiteralPrompt,
    /// Background tasks of a session, after which the agent starts turns by itself.
    BackgroundTasks,
}

impl Feature {
    /// All features, in the order of the documentation.
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

    /// Returns the field of [`RunRequest`] that requests the feature, with its value where only one value does:
    /// `max_tokens`, `conversation=fork`.
    pub fn field(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Effort => "effort",
            Self::SystemPrompt => "system_prompt",
            Self::AppendSystemPrompt => "append_system_prompt",
            Self::Attachments => "attachments",
            Self::Schema => "schema",
            Self::Resume => "conversation=resume",
            Self::Fork => "conversation=fork",
            Self::Continue => "conversation=continue",
            Self::ReadOnly => "permissions.mode=read-only",
            Self::Ask => "permissions.mode=ask",
            Self::Edit => "permissions.mode=edit",
            Self::Full => "permissions.mode=full",
            Self::AllowTools => "permissions.allow",
            Self::DenyTools => "permissions.deny",
            Self::MaxTurns => "max_turns",
            Self::MaxBudget => "max_budget_usd",
            Self::MaxSessionBudget => "max_session_budget_usd",
            Self::MaxTokens => "max_tokens",
            Self::MaxSessionTokens => "max_session_tokens",
            Self::AddDirs => "add_dirs",
            Self::McpServers => "mcp_servers",
            Self::McpSse => "mcp_servers.type=sse",
            Self::McpRequired => "mcp_servers.required",
            Self::McpEnabledTools => "mcp_servers.enabled_tools",
            Self::McpDisabledTools => "mcp_servers.disabled_tools",
            Self::McpTimeouts => "mcp_servers.timeouts",
            Self::McpStrict => "user_mcp_servers=left-out",
            Self::McpMergeRestore => "mcp_delivery=merge-restore",
            Self::Messages => "output=messages",
            Self::Batch => "output=batch",
            Self::UntrustedProject => "project_trust=untrusted",
            Self::LiteralPrompt => "prompt_mode=literal",
            Self::BackgroundTasks => "background_tasks",
        }
    }

    /// Whether the request uses the feature.
    pub fn is_used_by(self, request: &RunRequest) -> bool {
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
            Self::Fork => matches!(request.conversation, Conversation::Fork(_) | Conversation::ForkNewest),
            Self::Continue => matches!(request.conversation, Conversation::Continue | Conversation::ForkNewest),
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

/// The levels of reasoning effort that an agent accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffortLevels {
    /// Only these. Another level is rejected.
    Only(&'static [&'static str]),
    /// Those that the model defines; these are usual. The agent ignores other levels silently, so they cause a warning.
    OfModel(&'static [&'static str]),
    /// Those that the agent lists when a session opens.
    Listed,
}

/// Whether an agent supports a feature, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Supported, by this means.
    Yes(&'static str),
    /// Not supported, for this reason. The option is ignored with a warning.
    Ignored(&'static str),
    /// Not supported, for this reason. The request is rejected.
    Refused(&'static str),
}

/// A configuration file of a CLI that names variables with credentials.
#[derive(Clone, Copy, Debug)]
pub struct ConfiguredKeys {
    /// The variable that names the CLI's home.
    pub home_variable: &'static str,
    /// The CLI's home under the user's home, if the variable is not set.
    pub default_home: &'static str,
    /// The file in the CLI's home.
    pub file: &'static str,
    /// Returns the names of the variables in the content of the file. Unreadable content names none.
    pub read: fn(&str) -> Vec<String>,
}

/// What an agent can do, and how its CLI is installed and configured.
#[derive(Debug)]
pub struct Capabilities {
    /// The name of the CLI's program.
    pub program: &'static str,
    /// The version that the conformance tests use.
    pub tested_version: &'static str,
    /// The npm package that installs the CLI.
    pub package: &'static str,
    /// Variables that hold credentials; one of them is sufficient.
    pub credential_variables: &'static [&'static str],
    /// Variables that carry the agent's own credentials. A request can withhold all other keys.
    pub own_keys: &'static [OwnKeys],
    /// Variables that name the CLI's home and configuration. They are always inherited.
    pub home_variables: &'static [&'static str],
    /// The levels of [`Feature::Effort`].
    pub effort_levels: EffortLevels,
    /// Files under the user's home that hold credentials after a login.
    pub credential_files: &'static [&'static str],
    /// The configuration file of the CLI that names further variables with credentials, if it has one.
    pub configured_keys: Option<ConfiguredKeys>,
    /// The features, in the order of [`Feature::ALL`]. A feature that is not listed is refused.
    pub features: &'static [(Feature, Support)],
    /// The types of events that the agent can emit besides `error` and `done`, each with its conditions.
    pub events: &'static [(&'static str, &'static str)],
    /// The failure table.
    pub failures: &'static [FailureRow],
}

impl Capabilities {
    /// Returns whether and how the agent supports a feature.
    pub fn support(&self, feature: Feature) -> Support {
        let found = self.features.iter().find(|(other, _)| *other == feature);
        found.map_or(Support::Refused("the agent does not have it"), |(_, support)| *support)
    }

    /// Whether a variable is listed as a key of this agent.
    pub fn knows_key(&self, name: &str) -> bool {
        self.own_keys.iter().any(|keys| keys.lists(name))
    }

    /// Whether a variable is the agent's own key in this request. `value_of` returns the value of a variable of the run.
    pub fn owns_key(&self, name: &str, request: &RunRequest, value_of: impl Fn(&str) -> Option<String>) -> bool {
        self.own_keys.iter().any(|keys| keys.contain(name, request, &value_of))
    }

    /// Checks a request, and returns a warning for each option that will be ignored.
    ///
    /// # Errors
    /// If the agent does not support an option that cannot be ignored. The error names the first one.
    pub fn check(&self, agent: &str, request: &RunRequest) -> Result<Vec<Warning>, RequestError> {
        keys::check(self.own_keys, agent, request)?;
        let mut warnings: Vec<Warning> = self.check_effort(agent, request)?.into_iter().collect();
        for feature in Feature::ALL.iter().filter(|feature| feature.is_used_by(request)) {
            match self.support(*feature) {
                Support::Yes(_) => {}
                Support::Ignored(why) => {
                    let text = format!("{agent} does not support {}: {why}", feature.field());
                    warnings.push(Warning::new(WarningCode::OptionIgnored, text).with("option", feature.field()));
                }
                Support::Refused(why) => {
                    return Err(RequestError::Unsupported {
                        agent: agent.to_owned(),
                        option: feature.field(),
                        why: why.to_owned(),
                    });
                }
            }
        }
        Ok(warnings)
    }

    /// Checks the level of the effort. Returns a warning if the agent may ignore it.
    fn check_effort(&self, agent: &str, request: &RunRequest) -> Result<Option<Warning>, RequestError> {
        let Some(level) =
            request.effort.as_deref().filter(|_| matches!(self.support(Feature::Effort), Support::Yes(_)))
        else {
            return Ok(None);
        };
        let is_in = |levels: &[&str]| levels.iter().any(|known| known.eq_ignore_ascii_case(level));
        match self.effort_levels {
            EffortLevels::Only(levels) if !is_in(levels) => Err(RequestError::Effort {
                agent: agent.to_owned(),
                level: level.to_owned(),
                levels: levels.join(", "),
            }),
            EffortLevels::OfModel(usual) if !is_in(usual) => {
                let text = format!(
                    "{agent} ignores the effort {level:?} unless the model defines it; usual levels are {}",
                    usual.join(", ")
                );
                Ok(Some(Warning::new(WarningCode::OptionIgnored, text).with("option", Feature::Effort.field())))
            }
            _ => Ok(None),
        }
    }
}
