//! The tables `[[serve.rules]]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::PermissionName;

/// A rule. Without `channel`, `chats` and `authors` it matches every message.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleTable {
    /// Matches this channel: http, schedule, webhook-NAME, discord, slack or telegram
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Matches these chats
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chats: Option<Vec<String>>,
    /// Matches these authors
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authors: Option<Vec<String>>,
    /// The agent; a conversation cannot select another one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model; a conversation cannot select another one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the agent may do; a conversation cannot raise it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<PermissionName>,
    /// The working directory; a conversation can only select one below it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Instructions, appended to the general ones
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Rules for tools that need no permission
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_tools: Option<Vec<String>>,
    /// The budget of an author per day in US dollars; the agent must report its cost
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_budget_usd: Option<f64>,
    /// Who may answer permission requests besides admins: CHANNEL:AUTHOR, token:ID, author, or * for all members of the chat
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Vec<String>>,
    /// Reject messages
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reject: bool,
}
