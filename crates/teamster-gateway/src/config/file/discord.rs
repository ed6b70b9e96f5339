//! The table `[serve.discord]`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::telegram::GroupsName;

/// A Discord bot. It has no token itself, so that no secret is in the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiscordTable {
    /// The file with the token of the bot
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The environment variable with the token, instead of a file
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// What counts as a message to the bot in channels of servers: off, mentions (also replies and its threads), or all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<GroupsName>,
    /// Whether a message to the bot in a channel opens a thread, which is a conversation of its own
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<bool>,
    /// Whether the bot asks for the Message Content Intent, to read messages that do not mention it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_content: Option<bool>,
    /// The largest size of all files of a received message in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_download_bytes: Option<NonZeroU64>,
    /// The largest size of a sent file in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_upload_bytes: Option<NonZeroU64>,
    /// The URL of a REST API that is not Discord's own, with its version
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    /// The URL of a gateway that is not the one that the REST API names
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_url: Option<String>,
    /// Permit http and ws for such an API or gateway that is not on this machine
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_http: Option<bool>,
}
