//! The table `[serve.slack]`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::telegram::GroupsName;

/// A Slack app. It has no token itself, so that no secret is in the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SlackTable {
    /// The file with the token of the bot (xoxb-)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bot_token_file: Option<PathBuf>,
    /// The environment variable with the token of the bot, instead of a file
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bot_token_env: Option<String>,
    /// The file with the app-level token (xapp-)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_token_file: Option<PathBuf>,
    /// The environment variable with the app-level token, instead of a file
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_token_env: Option<String>,
    /// What counts as a message to the bot in channels: off, mentions (also its threads), or all
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<GroupsName>,
    /// Where a message of a channel is answered: thread (each is a conversation), or channel
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies: Option<RepliesName>,
    /// The largest size of all files of a received message in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_download_bytes: Option<NonZeroU64>,
    /// The largest size of a sent file in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_upload_bytes: Option<NonZeroU64>,
    /// The URL of the Web API
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    /// Permit http for a Web API that is not on this machine
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_http: Option<bool>,
}

/// Where a message of a channel is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepliesName {
    /// In a thread of the message.
    Thread,
    /// In the channel.
    Channel,
}

impl SlackTable {
    /// Returns the files with secrets, each with its key.
    pub fn secret_files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let bot = self.bot_token_file.iter().map(|file| ("bot_token_file", file));
        bot.chain(self.app_token_file.iter().map(|file| ("app_token_file", file)))
    }
}
