//! The configuration of the tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_store::ChatAddress;

/// The tools of the gateway for agents.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// Offer the tools to agents
    pub enabled: bool,
    /// Other chats to which agents may send: CHANNEL:CHAT, or CHANNEL:* for all chats of a channel
    pub other_chats: Vec<String>,
    /// The largest file that an agent may send, in bytes
    pub max_file_bytes: u64,
    /// Messages and files that an agent may send in a turn
    pub sends_per_turn: u32,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self { enabled: true, other_chats: Vec::new(), max_file_bytes: 20 << 20, sends_per_turn: 50 }
    }
}

impl ToolsConfig {
    /// Checks the list of chats. Returns the first entry that is not `CHANNEL:CHAT`.
    pub fn invalid_chat(&self) -> Option<&str> {
        let is_valid =
            |entry: &str| entry.split_once(':').is_some_and(|(channel, chat)| !channel.is_empty() && !chat.is_empty());
        self.other_chats.iter().map(String::as_str).find(|entry| !is_valid(entry))
    }

    /// Returns whether an agent of another chat may send to this one.
    pub(super) fn permits(&self, to: &ChatAddress) -> bool {
        self.other_chats
            .iter()
            .filter_map(|entry| entry.split_once(':'))
            .any(|(channel, chat)| channel == to.channel && (chat == "*" || chat == to.chat))
    }
}
