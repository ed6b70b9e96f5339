//! What all handlers of envelopes share: the channel, the inbox, the bot, and replies.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use teamster_channel::{Address, COMMANDS, Inbox, TextLimit, TextUnit, split};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::Replies;
use crate::lanes::Recent;
use crate::people::People;
use crate::send::MAX_TEXT;
use crate::service::SlackChannel;
use crate::types::Bot;

/// The number of messages whose files are downloaded and kept at the same time.
const MAX_DOWNLOADS: usize = 4;

/// Handles envelopes.
pub(crate) struct Handler<'a> {
    pub(crate) channel: &'a SlackChannel,
    pub(crate) inbox: &'a dyn Inbox,
    pub(crate) bot: Bot,
    pub(crate) stop: CancellationToken,
    pub(crate) people: People,
    /// The messages that were handled. A mention arrives as two events.
    handled: Mutex<Recent>,
    /// Held while the threads are stored: each stored state has all those before.
    pub(crate) joining: tokio::sync::Mutex<()>,
    pub(crate) downloads: Semaphore,
}

/// What the bot writes after it has acknowledged an event.
pub(crate) struct Reply {
    pub(crate) address: Address,
    /// The text, in Markdown.
    pub(crate) text: String,
}

impl<'a> Handler<'a> {
    pub(crate) fn new(channel: &'a SlackChannel, inbox: &'a dyn Inbox, bot: Bot, stop: CancellationToken) -> Self {
        Self {
            channel,
            inbox,
            bot,
            stop,
            people: People::default(),
            handled: Mutex::default(),
            joining: tokio::sync::Mutex::default(),
            downloads: Semaphore::new(MAX_DOWNLOADS),
        }
    }

    /// Waits, or until the gateway stops.
    pub(crate) async fn pause(&self, delay: Duration) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(delay) => {}
        }
    }

    /// Returns the ids of the messages that were handled.
    pub(crate) fn handled(&self) -> MutexGuard<'_, Recent> {
        self.handled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a reply, directly: it is not stored, and it is not sent again.
    pub(crate) async fn reply(&self, Reply { address, text }: Reply) {
        for part in split(&text, TextLimit { max: MAX_TEXT, unit: TextUnit::Chars }) {
            if let Err(error) = self.channel.post(&address, &part, None, None).await {
                tracing::warn!(%error, "a reply in Slack was not sent");
                return;
            }
        }
    }
}

/// Returns what the bot can do. It has what an operator needs for a rule.
pub(crate) fn help(author: &str, chat: &str, replies: Replies) -> String {
    let commands: Vec<_> =
        COMMANDS.iter().map(|command| format!("- {}: {}", command.name, command.description)).collect();
    let in_threads = match replies {
        Replies::Thread => {
            "In a channel each thread is a conversation: mention me there with a command, such as `/status`."
        }
        Replies::Channel => "In a channel, mention me, also with a command, such as `/status`.",
    };
    format!(
        "Write a message, and an agent answers it, if the operator of this gateway lets you.\n\nCommands of `/teamster`:\n\n{}\n\n{}\
         \n\nFor the operator: your author id is `{author}`, the id of this chat is `{chat}`.",
        commands.join("\n"),
        in_threads
    )
}
