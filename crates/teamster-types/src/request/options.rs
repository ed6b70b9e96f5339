//! The options of a request that are a choice.
//!
//! Enums that an agent must handle completely are exhaustive: a new value must not compile until each agent handles it.

use serde::{Deserialize, Serialize};

use crate::event::SessionId;

/// The conversation of a run. Exhaustive, because an agent must handle every value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Conversation {
    /// Start a new conversation.
    #[default]
    New,
    /// Resume this conversation.
    Resume(SessionId),
    /// Start a new conversation with the history of this one.
    Fork(SessionId),
    /// Resume the newest conversation of the working directory, or start a new one if there is none.
    Continue,
    /// Start a new conversation with the history of the newest one of the working directory, or without one if there is none.
    ForkNewest,
}

/// The interface through which a CLI is driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AgentInterface {
    /// The best one. A run uses one turn of the live interface if that reports more. A session uses one process for all turns
    /// if the CLI has a live interface.
    #[default]
    Auto,
    /// The one-shot interface, also in a session: each turn is a run.
    Exec,
    /// One process for each turn of a session, through the best interface. A run is one turn.
    Spawn,
}

/// When the text of an answer is emitted. Exhaustive, because an agent must handle every value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum OutputMode {
    /// While it is generated: as deltas, if the agent has them.
    #[default]
    Stream,
    /// Message by message, without deltas.
    Messages,
    /// At the end, as one document, if the agent has that form.
    Batch,
}

/// Whether the agent configuration in the working directory is used. Such configuration can run hooks, start MCP servers, and
/// send the vendor's key elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ProjectTrust {
    /// The agent's default applies.
    #[default]
    Trusted,
    /// No such configuration is used.
    Untrusted,
}

/// Whether the MCP servers of the user's and the project's configuration are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum UserMcpServers {
    /// They are used beside the servers of the request.
    #[default]
    Used,
    /// They are not started. Only the servers of the request are used.
    LeftOut,
}

/// How the MCP servers of a run are passed to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum McpDelivery {
    /// By arguments, variables and private files. The user's files are not changed.
    #[default]
    Auto,
    /// By the user's configuration file. The servers are merged into it during the run, and it is restored afterwards.
    MergeRestore,
}

/// What happens to processes of a run that are alive when the CLI exits: servers, watchers, background jobs of its shell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum OrphanPolicy {
    /// They are terminated, and killed after the grace period.
    #[default]
    Kill,
    /// They stay alive, and the result lists them. This applies only if the CLI exits by itself. If the run is aborted or
    /// reaches a limit, or if the host dies, the whole process tree is killed.
    Keep,
}

/// Whether an agent may interpret a prompt: a leading `/` runs a command, `@path` reads a file of the host, `$name` adds a
/// skill. Exhaustive, because an agent must handle every value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PromptMode {
    /// The agent may interpret it.
    #[default]
    Agent,
    /// The model receives the exact text.
    Literal,
}
