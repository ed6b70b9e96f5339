//! The table `[serve.telegram]`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Telegram bot. It has no token itself, so that no secret is in the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TelegramTable {
    /// The file with the token of the bot
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The environment variable with the token, instead of a file
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// What counts as a message to the bot in groups: off, mentions (also replies and commands), or all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<GroupsName>,
    /// The largest size of all files of a received message in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_download_bytes: Option<NonZeroU64>,
    /// The largest size of a sent file in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_upload_bytes: Option<NonZeroU64>,
    /// The URL of a Bot API server of your own
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    /// Permit http for a Bot API server that is not on this machine
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_http: Option<bool>,
}

/// What counts as a message to the bot in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupsName {
    /// Nothing.
    Off,
    /// Mentions, replies and commands.
    Mentions,
    /// Every message.
    All,
}
