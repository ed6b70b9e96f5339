//! The channels that the bot has seen, and the threads that it opens.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{Body, Call, CallError};
use crate::service::DiscordChannel;
use crate::text::label;
use crate::types::{Channel, Member, Message};

/// The number of channels above which all are forgotten. They are requested again.
const MAX_CHANNELS: usize = 50_000;

/// How long the roles of the bot in a server are used.
const ROLES_LAST: Duration = Duration::from_mins(10);

/// The longest name of a thread, in characters.
const MAX_THREAD_NAME: usize = 100;

/// The name of a thread whose message has no text.
const THREAD_NAME: &str = "Conversation";

/// How long a thread without messages stays in the list of clients, in minutes.
const ARCHIVE_AFTER: u32 = 1_440;

/// The code of an error: the message has a thread already.
const HAS_THREAD: u64 = 160_004;

impl DiscordChannel {
    /// Remembers channels.
    pub(crate) fn remember(&self, channels: impl IntoIterator<Item = Channel>) {
        let mut known = self.known().lock().unwrap_or_else(PoisonError::into_inner);
        if known.channels.len() >= MAX_CHANNELS {
            known.channels.clear();
        }
        known.channels.extend(channels.into_iter().map(|channel| (channel.id.clone(), channel)));
    }

    /// Returns a channel of a server. One that the bot cannot see counts as a plain one.
    pub(crate) async fn channel_of(&self, id: &str) -> Result<Channel, CallError> {
        let found = self.known().lock().unwrap_or_else(PoisonError::into_inner).channels.get(id).cloned();
        if let Some(found) = found {
            return Ok(found);
        }
        let call = Call::new(Method::GET, "channel", id, vec!["channels", id]);
        let channel = match self.api().call::<Channel>(&call, Body::None).await {
            Ok(channel) => channel,
            Err(CallError::Refused { status: 403 | 404, .. }) => {
                Channel { id: id.to_owned(), r#type: u8::MAX, ..Channel::default() }
            }
            Err(error) => return Err(error),
        };
        self.remember([channel.clone()]);
        Ok(channel)
    }

    /// Returns the roles of the bot in a server.
    pub(crate) async fn roles_in(&self, guild: &str, bot: &str) -> Result<Vec<String>, CallError> {
        let found = self.known().lock().unwrap_or_else(PoisonError::into_inner).roles.get(guild).cloned();
        if let Some((_, roles)) = found.filter(|(at, _)| at.elapsed() < ROLES_LAST) {
            return Ok(roles);
        }
        let call = Call::new(Method::GET, "member", guild, vec!["guilds", guild, "members", bot]);
        let roles = match self.api().call::<Member>(&call, Body::None).await {
            Ok(member) => member.roles,
            Err(CallError::Refused { status: 403 | 404, .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut known = self.known().lock().unwrap_or_else(PoisonError::into_inner);
        known.roles.insert(guild.to_owned(), (Instant::now(), roles.clone()));
        Ok(roles)
    }

    /// Opens the thread of a message. It is open afterwards, also if it was before.
    pub(crate) async fn open_thread(&self, chat: &str, message: &str, text: Option<&str>) -> Result<(), CallError> {
        let name = match text {
            Some(text) => label(text, MAX_THREAD_NAME),
            None => label(&self.content_of(chat, message).await, MAX_THREAD_NAME),
        };
        let name = if name.is_empty() { THREAD_NAME.to_owned() } else { name };
        let body = json!({"name": name, "auto_archive_duration": ARCHIVE_AFTER});
        let path = vec!["channels", chat, "messages", message, "threads"];
        let call = Call::new(Method::POST, "openThread", chat, path);
        match self.api().call::<Channel>(&call, Body::Json(&body)).await {
            Ok(thread) => {
                self.remember([thread]);
                Ok(())
            }
            Err(error) if error.code() == Some(HAS_THREAD) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the text of a message for the name of its thread; empty if there is none.
    async fn content_of(&self, channel: &str, message: &str) -> String {
        let call = Call::new(Method::GET, "message", channel, vec!["channels", channel, "messages", message]);
        let found = self.api().call::<Value>(&call, Body::None).await;
        let found = found.ok().and_then(|value| serde_json::from_value::<Message>(value).ok());
        found.map(|message| message.content).unwrap_or_default()
    }
}
