//! Instructions for agents: texts and files with placeholders.

use teamster_store::{ConversationId, Timestamp};

use crate::config;

/// The values of placeholders. Names and chats are chosen by strangers.
#[derive(Clone, Copy, Debug)]
pub struct Placeholders<'a> {
    /// The channel.
    pub channel: &'a str,
    /// The chat.
    pub chat: &'a str,
    /// The author.
    pub author: &'a str,
    /// The conversation.
    pub conversation: ConversationId,
    /// The time.
    pub now: Timestamp,
}

/// The instructions of the operator.
#[derive(Debug, Default)]
pub struct Instructions {}

impl Instructions {
    /// Uses these files.
    pub fn new(_config: &config::Instructions) -> Self {
        Self {}
    }

    /// Returns the instructions of files and of `texts`, with placeholders replaced.
    pub fn render(&self, texts: &[String], _placeholders: &Placeholders<'_>) -> String {
        texts.join("\n\n")
    }
}
