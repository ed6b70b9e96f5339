//! Messages of the bot.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::body::{Sent, SentFile};
use super::bot::{BOT_ID, bot};
use super::clock::{now_ms, timestamp};
use super::error::ApiError;
use super::values::{found_mentions, id_of};
use super::world::World;

/// The longest text of a message in characters.
const MAX_TEXT: usize = 2_000;

/// The largest file of a bot.
const MAX_FILE: usize = 10 << 20;

/// How long a nonce is recognized.
const NONCE_LASTS: Duration = Duration::from_mins(5);

/// The longest nonce.
const MAX_NONCE: usize = 25;

/// The flags that a bot may set: no previews, no notification.
const FLAGS: u64 = (1 << 2) | (1 << 12);

impl World {
    /// The bot creates a message.
    pub(super) fn create_message(&mut self, channel: u64, sent: &Sent) -> Result<Value, ApiError> {
        if !self.channels.contains_key(&channel) {
            return Err(ApiError::unknown_channel());
        }
        let content = checked(sent, false)?;
        let nonce = nonce(sent)?;
        let is_enforced = sent.json.get("enforce_nonce") == Some(&json!(true));
        let key = nonce.clone().filter(|_| is_enforced).map(|nonce| (channel, nonce));
        if let Some((at, message)) = key.as_ref().and_then(|key| self.nonces.get(key))
            && at.elapsed() < NONCE_LASTS
        {
            return Ok(message.clone());
        }
        let reference = sent.json.pointer("/message_reference/message_id").and_then(id_of);
        let replied = reference.and_then(|id| self.channels.get(&channel)?.messages.get(&id).cloned());
        let may_lack = sent.json.pointer("/message_reference/fail_if_not_exists") == Some(&json!(false));
        if reference.is_some() && replied.is_none() && !may_lack {
            return Err(ApiError::invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message"));
        }
        let files = self.store_files(&sent.files);
        let more = json!({"content": content, "components": components(sent)?, "attachments": files, "nonce": nonce,
            "flags": flags(sent), "referenced_message": replied, "type": if replied.is_some() { 19 } else { 0 }});
        let message = self.store(channel, &bot(), &more, &parsed(sent));
        if let Some(key) = key {
            self.nonces.insert(key, (Instant::now(), message.clone()));
        }
        let event = self.with_guild(channel, message.clone());
        self.dispatch("MESSAGE_CREATE", &event);
        Ok(message)
    }

    pub(super) fn store_files(&mut self, files: &[SentFile]) -> Vec<Value> {
        let mut stored = Vec::with_capacity(files.len());
        for file in files {
            let (id, host) = (self.next_id(), self.host.clone());
            stored.push(self.files.add(id, &host, file.clone(), None));
        }
        stored
    }

    /// Stores a message. `parse` are the kinds of mentions that notify.
    pub(super) fn store(&mut self, channel: u64, author: &Value, more: &Value, parse: &[String]) -> Value {
        let id = self.next_id();
        let content = more.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_parsed = |kind: &str| parse.iter().any(|known| known == kind);
        let (users, roles) = found_mentions(&content);
        let users: Vec<_> =
            if is_parsed("users") { users.into_iter().map(|id| self.user(id)).collect() } else { Vec::new() };
        let roles = if is_parsed("roles") { roles } else { Vec::new() };
        let everyone = is_parsed("everyone") && (content.contains("@everyone") || content.contains("@here"));
        let mut message = json!({"id": id.to_string(), "channel_id": channel.to_string(), "author": author,
            "content": content, "timestamp": timestamp(now_ms()), "edited_timestamp": null, "tts": false,
            "mention_everyone": everyone, "mentions": users, "mention_roles": roles, "attachments": [], "embeds": [],
            "pinned": false, "type": 0, "flags": 0, "components": [], "reactions": []});
        if let (Value::Object(message), Value::Object(more)) = (&mut message, more) {
            message.extend(more.clone().into_iter().filter(|(_, value)| !value.is_null()));
        }
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.messages.insert(id, message.clone());
        }
        message
    }

    /// Returns the messages of a channel, newest first as the service does.
    pub(super) fn history(&self, channel: u64, sent: &Sent) -> Result<Value, ApiError> {
        let found = self.channels.get(&channel).ok_or_else(ApiError::unknown_channel)?;
        let limit = sent.query("limit").and_then(|limit| limit.parse().ok()).unwrap_or(50);
        if !(1..=100).contains(&limit) {
            return Err(ApiError::invalid("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100."));
        }
        let bound = |name: &str| sent.query(name).and_then(|id| id.parse::<u64>().ok());
        let messages: Vec<_> = match (bound("after"), bound("before")) {
            (Some(after), _) => {
                let later = found.messages.range(after.saturating_add(1)..).take(limit);
                later.map(|(_, message)| message.clone()).collect::<Vec<_>>().into_iter().rev().collect()
            }
            (None, before) => {
                let earlier = found.messages.range(..before.unwrap_or(u64::MAX)).rev().take(limit);
                earlier.map(|(_, message)| message.clone()).collect()
            }
        };
        // The service keeps a nonce for the answer and the event only.
        let without_nonce = |mut message: Value| {
            if let Some(message) = message.as_object_mut() {
                message.remove("nonce");
            }
            message
        };
        Ok(messages.into_iter().map(without_nonce).collect())
    }

    pub(super) fn message(&self, channel: u64, message: u64) -> Result<Value, ApiError> {
        let found = self.channels.get(&channel).ok_or_else(ApiError::unknown_channel)?;
        found.messages.get(&message).cloned().ok_or_else(ApiError::unknown_message)
    }

    /// The bot changes one of its messages.
    pub(super) fn edit_message(&mut self, channel: u64, message: u64, sent: &Sent) -> Result<Value, ApiError> {
        let stored = self.message(channel, message)?;
        if stored.pointer("/author/id").and_then(id_of) != Some(BOT_ID) {
            return Err(ApiError::new(403, 50_005, "Cannot edit a message authored by another user"));
        }
        let mut changes = json!({"edited_timestamp": timestamp(now_ms())});
        if let Some(changes) = changes.as_object_mut() {
            if sent.json.get("content").is_some() {
                changes.insert("content".to_owned(), checked(sent, has_files(&stored))?.into());
            }
            if sent.json.get("components").is_some() {
                changes.insert("components".to_owned(), components(sent)?.into());
            }
        }
        Ok(self.change_message(channel, message, changes))
    }

    /// Changes a stored message, and sends the event.
    pub(super) fn change_message(&mut self, channel: u64, message: u64, changes: Value) -> Value {
        let stored = self.channels.get_mut(&channel).and_then(|channel| channel.messages.get_mut(&message));
        let Some(stored) = stored else { return Value::Null };
        if let (Value::Object(stored), Value::Object(changes)) = (&mut *stored, changes) {
            stored.extend(changes);
        }
        let now = stored.clone();
        let event = self.with_guild(channel, now.clone());
        self.dispatch("MESSAGE_UPDATE", &event);
        now
    }

    /// Removes a message, and sends the event.
    pub(super) fn remove_message(&mut self, channel: u64, message: u64) -> Result<(), ApiError> {
        let found = self.channels.get_mut(&channel).ok_or_else(ApiError::unknown_channel)?;
        found.messages.remove(&message).ok_or_else(ApiError::unknown_message)?;
        let guild = found.guild.map(|guild| guild.to_string());
        let event = json!({"id": message.to_string(), "channel_id": channel.to_string(), "guild_id": guild});
        self.dispatch("MESSAGE_DELETE", &event);
        Ok(())
    }

    /// Adds the server to a message, as events have it.
    pub(super) fn with_guild(&self, channel: u64, mut message: Value) -> Value {
        let guild = self.channels.get(&channel).and_then(|channel| channel.guild);
        if let (Some(guild), Some(message)) = (guild, message.as_object_mut()) {
            message.insert("guild_id".to_owned(), guild.to_string().into());
            let member =
                json!({"nick": null, "roles": [], "joined_at": timestamp(0), "deaf": false, "mute": false, "flags": 0});
            message.insert("member".to_owned(), member);
        }
        message
    }
}

/// Returns the content of a call, if it is one.
pub(super) fn checked(sent: &Sent, has_file: bool) -> Result<String, ApiError> {
    let content = sent.text("content").unwrap_or_default().trim();
    if content.chars().count() > MAX_TEXT {
        return Err(ApiError::invalid("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length."));
    }
    let is_visible = |character: char| !character.is_whitespace() && !matches!(character, '\u{200b}'..='\u{200f}');
    if !content.chars().any(is_visible) && sent.files.is_empty() && !has_file {
        return Err(ApiError::new(400, 50_006, "Cannot send an empty message"));
    }
    if sent.files.iter().any(|file| file.bytes.len() > MAX_FILE) {
        return Err(ApiError::new(413, 40_005, "Request entity too large"));
    }
    Ok(content.to_owned())
}

fn has_files(message: &Value) -> bool {
    message.get("attachments").and_then(Value::as_array).is_some_and(|files| !files.is_empty())
}

fn nonce(sent: &Sent) -> Result<Option<String>, ApiError> {
    let nonce = match sent.json.get("nonce") {
        Some(Value::String(nonce)) => nonce.clone(),
        Some(Value::Number(nonce)) => nonce.to_string(),
        _ => return Ok(None),
    };
    if nonce.len() > MAX_NONCE {
        return Err(ApiError::invalid("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length."));
    }
    Ok(Some(nonce))
}

fn flags(sent: &Sent) -> u64 {
    sent.json.get("flags").and_then(Value::as_u64).unwrap_or_default() & FLAGS
}

/// Returns the kinds of mentions that notify. Without a choice, all do.
fn parsed(sent: &Sent) -> Vec<String> {
    match sent.json.pointer("/allowed_mentions/parse").and_then(Value::as_array) {
        Some(kinds) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => ["users", "roles", "everyone"].map(str::to_owned).to_vec(),
    }
}

/// Checks the rows of buttons of a call.
pub(super) fn components(sent: &Sent) -> Result<Vec<Value>, ApiError> {
    let rows = sent.json.get("components").and_then(Value::as_array).cloned().unwrap_or_default();
    let wrong = |message: &str| ApiError::invalid("components", "BASE_TYPE_BAD_LENGTH", message);
    if rows.len() > 5 {
        return Err(wrong("Must be 5 or fewer in length."));
    }
    let mut ids = Vec::new();
    for row in &rows {
        let buttons = row.get("components").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if row.get("type") != Some(&json!(1)) || !(1..=5).contains(&buttons.len()) {
            return Err(wrong("Must be between 1 and 5 in length."));
        }
        for button in buttons {
            let text = |name: &str| button.get(name).and_then(Value::as_str).unwrap_or_default();
            let is_style = matches!(button.get("style").and_then(Value::as_u64), Some(1..=4));
            let has_lengths =
                (1..=80).contains(&text("label").chars().count()) && (1..=100).contains(&text("custom_id").len());
            if button.get("type") != Some(&json!(2)) || !is_style || !has_lengths {
                return Err(wrong("A button is invalid."));
            }
            if ids.iter().any(|known| known == text("custom_id")) {
                return Err(ApiError::invalid(
                    "components",
                    "COMPONENT_CUSTOM_ID_DUPLICATED",
                    "Component custom id cannot be duplicated",
                ));
            }
            ids.push(text("custom_id").to_owned());
        }
    }
    Ok(rows)
}
