//! Channels, and the messages in them.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::blocks;
use super::error::ApiError;
use super::ids::{APP_ID, BOT_ID, BOT_USER, TEAM};
use super::world::{Channel, World};
use crate::params::Params;

/// The longest text of a new message, and of an edit.
const MAX_TEXT: usize = 40_000;
const MAX_EDIT: usize = 4_000;

impl World {
    /// Creates a channel. `has_bot`: whether the bot is a member.
    pub(super) fn create_channel(&mut self, id: &str, kind: &str, has_bot: bool) {
        self.channels.insert(id.to_owned(), Channel { kind: kind.to_owned(), has_bot, ..Channel::default() });
    }

    /// Returns the messages of a channel.
    pub(super) fn messages(&self, channel: &str) -> Vec<Value> {
        self.channels.get(channel).map(|channel| channel.messages.values().cloned().collect()).unwrap_or_default()
    }

    /// Stores a message with a time, reports it to the app, and returns the time.
    pub(super) fn store(&mut self, channel: &str, message: Value) -> String {
        let ts = self.next_ts();
        let mut message = match message {
            Value::Object(message) => message.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            _ => Map::new(),
        };
        message.insert("ts".to_owned(), ts.clone().into());
        message.insert("team".to_owned(), TEAM.into());
        if let Some(found) = self.channels.get_mut(channel) {
            found.messages.insert(ts.clone(), Value::Object(message.clone()));
        }
        self.announce(channel, message);
        ts
    }

    /// Adds the events of a new message: one for each subscription.
    fn announce(&mut self, channel: &str, mut message: Map<String, Value>) {
        let Some((kind, true)) = self.channels.get(channel).map(|found| (found.kind.clone(), found.has_bot)) else {
            return;
        };
        message.remove("metadata");
        message.insert("channel".to_owned(), channel.into());
        message.insert("event_ts".to_owned(), message.get("ts").cloned().unwrap_or_default());
        let text = message.get("text").and_then(Value::as_str).unwrap_or_default();
        let is_mention = text.contains(&format!("<@{BOT_USER}>"));
        let is_own = message.get("bot_id").and_then(Value::as_str) == Some(BOT_ID);
        let mut mention = message.clone();
        message.insert("channel_type".to_owned(), kind.as_str().into());
        self.add_event(&Value::Object(message));
        if is_mention && !is_own && kind != "im" {
            mention.insert("type".to_owned(), "app_mention".into());
            self.add_event(&Value::Object(mention));
        }
    }

    /// Returns a channel in which the bot can write.
    pub(super) fn writable(&mut self, id: &str) -> Result<&mut Channel, ApiError> {
        let channel = self.channels.get_mut(id).ok_or_else(|| ApiError::new("channel_not_found"))?;
        if channel.has_bot { Ok(channel) } else { Err(ApiError::new("not_in_channel")) }
    }

    pub(super) fn post(&mut self, params: &Params) -> Result<Value, ApiError> {
        let id = params.text("channel").unwrap_or_default().to_owned();
        let limit = self.channel_limit;
        let channel = self.writable(&id)?;
        let thread = params.text("thread_ts").filter(|thread| !thread.is_empty());
        if thread.is_some_and(|thread| !channel.messages.contains_key(thread)) {
            return Err(ApiError::new("thread_not_found"));
        }
        let content = content(params, MAX_TEXT)?;
        if let Some((max, within)) = limit {
            let now = Instant::now();
            channel.sent.retain(|at| now.duration_since(*at) < within);
            if channel.sent.len() >= max {
                return Err(ApiError::too_many(within.as_secs().max(1)));
            }
            channel.sent.push_back(now);
        }
        let mut message = json!({"type": "message", "user": BOT_USER, "bot_id": BOT_ID, "app_id": APP_ID,
            "thread_ts": thread, "metadata": metadata(params)?});
        extend(&mut message, content);
        let ts = self.store(&id, message.clone());
        extend(&mut message, Map::from_iter([("ts".to_owned(), ts.clone().into())]));
        Ok(json!({"channel": id, "ts": ts, "message": message}))
    }

    pub(super) fn update(&mut self, params: &Params) -> Result<Value, ApiError> {
        let (id, ts) = self.own(params, "cant_update_message")?;
        let content = content(params, MAX_EDIT)?;
        let channel = self.writable(&id)?;
        let Some(message) = channel.messages.get_mut(&ts) else { return Err(ApiError::new("message_not_found")) };
        let before = message.clone();
        if params.values.contains_key("blocks")
            && let Some(message) = message.as_object_mut()
        {
            message.remove("blocks");
        }
        extend(message, content);
        extend(message, Map::from_iter([("edited".to_owned(), json!({"user": BOT_USER, "ts": ts}))]));
        let after = message.clone();
        let text = after.get("text").cloned();
        let event = json!({"type": "message", "subtype": "message_changed", "channel": id, "ts": ts,
            "message": after, "previous_message": before, "hidden": true});
        self.add_event(&event);
        Ok(json!({"channel": id, "ts": ts, "text": text}))
    }

    pub(super) fn delete(&mut self, params: &Params) -> Result<Value, ApiError> {
        let (id, ts) = self.own(params, "cant_delete_message")?;
        self.writable(&id)?.messages.remove(&ts);
        Ok(json!({"channel": id, "ts": ts}))
    }

    /// Returns channel and time of a message of the bot.
    fn own(&mut self, params: &Params, refusal: &'static str) -> Result<(String, String), ApiError> {
        let id = params.text("channel").unwrap_or_default().to_owned();
        let ts = params.text("ts").unwrap_or_default().to_owned();
        let channel = self.writable(&id)?;
        let message = channel.messages.get(&ts).ok_or_else(|| ApiError::new("message_not_found"))?;
        let is_own = message.get("bot_id").and_then(Value::as_str) == Some(BOT_ID);
        if is_own { Ok((id, ts)) } else { Err(ApiError::new(refusal)) }
    }

    /// Returns a page of the messages of a channel, or of a thread of it.
    pub(super) fn history(&mut self, params: &Params, is_thread: bool) -> Result<Value, ApiError> {
        let id = params.text("channel").unwrap_or_default().to_owned();
        let thread = params.text("ts").unwrap_or_default();
        let oldest = params.text("oldest").unwrap_or_default();
        let channel = self.writable(&id)?;
        if is_thread && !channel.messages.contains_key(thread) {
            return Err(ApiError::new("thread_not_found"));
        }
        let is_in = |ts: &String, message: &Value| {
            let of = message.get("thread_ts").and_then(Value::as_str);
            let is_here = if is_thread { ts == thread || of == Some(thread) } else { of.is_none_or(|of| of == ts) };
            is_here && (ts.as_str() > oldest || ts == thread)
        };
        let mut found: Vec<Value> =
            channel.messages.iter().filter(|(ts, message)| is_in(ts, message)).map(|(_, one)| one.clone()).collect();
        if !is_thread {
            found.reverse();
        }
        if params.text("include_all_metadata").is_none_or(|flag| !matches!(flag, "true" | "1")) {
            found.iter_mut().filter_map(Value::as_object_mut).for_each(|message| _ = message.remove("metadata"));
        }
        let start = params.text("cursor").and_then(|cursor| cursor.parse().ok()).unwrap_or(0_usize);
        let limit = params.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(100).clamp(1, 1_000);
        let page: Vec<_> = found.iter().skip(start).take(limit).collect();
        let has_more = start + page.len() < found.len();
        let cursor = if has_more { (start + page.len()).to_string() } else { String::new() };
        Ok(json!({"messages": page, "has_more": has_more, "response_metadata": {"next_cursor": cursor}}))
    }
}

/// Returns text and blocks of a call.
fn content(params: &Params, max: usize) -> Result<Map<String, Value>, ApiError> {
    let text = params.text("text").unwrap_or_default();
    let blocks = params.json("blocks").filter(|blocks| blocks.as_array().is_none_or(|blocks| !blocks.is_empty()));
    if text.is_empty() && blocks.is_none() {
        return Err(ApiError::new("no_text"));
    }
    if text.chars().count() > max {
        return Err(ApiError::new("msg_too_long"));
    }
    let mut content = Map::from_iter([("text".to_owned(), text.into())]);
    if let Some(found) = blocks {
        blocks::checked(&found)?;
        content.insert("blocks".to_owned(), found);
    }
    Ok(content)
}

fn metadata(params: &Params) -> Result<Option<Value>, ApiError> {
    let Some(metadata) = params.json("metadata") else { return Ok(None) };
    let has_type = metadata.get("event_type").and_then(Value::as_str).is_some_and(|kind| !kind.is_empty());
    if has_type && metadata.get("event_payload").is_some_and(Value::is_object) {
        return Ok(Some(metadata));
    }
    Err(ApiError::new("invalid_metadata_format"))
}

fn extend(object: &mut Value, more: Map<String, Value>) {
    if let Value::Object(object) = object {
        object.extend(more);
    }
}
