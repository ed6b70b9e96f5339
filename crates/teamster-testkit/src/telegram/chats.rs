//! Chats, and the messages in them.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::error::ApiError;
use super::world::{Chat, World, bot, now};
use crate::params::Params;

impl World {
    /// Creates a group. With topics, it is a forum.
    pub(super) fn create_group(&mut self, id: i64, topics: &[i64]) {
        let kind = if topics.is_empty() { "group" } else { "supergroup" };
        self.chats.insert(id, Chat { kind, topics: topics.to_vec(), ..Chat::default() });
    }

    /// Makes a group a supergroup with another id.
    pub(super) fn migrate(&mut self, from: i64, to: i64) {
        let Some(chat) = self.chats.get_mut(&from) else { return };
        chat.migrated_to = Some(to);
        self.chats.insert(to, Chat { kind: "supergroup", ..Chat::default() });
        let service = |world: &Self, chat: i64, more: Value| world.object(chat, 1, &bot(), more);
        let before = service(self, from, json!({"migrate_to_chat_id": to}));
        let after = service(self, to, json!({"migrate_from_chat_id": from}));
        self.add_update("message", before);
        self.add_update("message", after);
    }

    /// Returns the messages of a chat.
    pub(super) fn messages(&self, chat: i64) -> Vec<Value> {
        self.chats.get(&chat).map(|chat| chat.messages.values().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn remove(&mut self, chat: i64, message: i64) -> bool {
        self.chats.get_mut(&chat).is_some_and(|chat| chat.messages.remove(&message).is_some())
    }

    /// Returns the object of a chat.
    pub(super) fn chat_object(&self, id: i64) -> Value {
        let chat = self.chats.get(&id);
        match chat.map_or("private", |chat| chat.kind) {
            "private" => json!({"id": id, "type": "private", "first_name": "Person"}),
            kind if chat.is_some_and(|chat| !chat.topics.is_empty()) => {
                json!({"id": id, "type": kind, "title": "Group", "is_forum": true})
            }
            kind => json!({"id": id, "type": kind, "title": "Group"}),
        }
    }

    /// Returns the object of a message.
    pub(super) fn object(&self, chat: i64, id: i64, from: &Value, more: Value) -> Value {
        let mut message = Map::new();
        message.insert("message_id".to_owned(), id.into());
        message.insert("date".to_owned(), now().into());
        message.insert("chat".to_owned(), self.chat_object(chat));
        message.insert("from".to_owned(), from.clone());
        if let Value::Object(more) = more {
            message.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        }
        Value::Object(message)
    }

    /// Stores a message, and returns its object.
    pub(super) fn store(&mut self, chat: i64, from: &Value, more: Value) -> Value {
        let entry = self.chats.entry(chat).or_insert_with(|| Chat { kind: "private", ..Chat::default() });
        entry.last_message += 1;
        let id = entry.last_message;
        let message = self.object(chat, id, from, more);
        if let Some(entry) = self.chats.get_mut(&chat) {
            entry.messages.insert(id, message.clone());
        }
        message
    }

    /// Returns the fields of the topic of a message.
    pub(super) fn topic(&self, chat: i64, thread: Option<i64>) -> Value {
        match thread.filter(|thread| self.chats.get(&chat).is_some_and(|chat| chat.topics.contains(thread))) {
            Some(thread) => json!({"message_thread_id": thread, "is_topic_message": true}),
            None => json!({}),
        }
    }

    /// Returns the chat of a call of the bot, and its topic.
    pub(super) fn destination(&self, params: &Params) -> Result<(i64, Value), ApiError> {
        let id = params.number("chat_id").ok_or_else(|| ApiError::bad("chat_id is empty"))?;
        // A bot cannot write to a person who has not written to it.
        let chat = self.chats.get(&id).ok_or_else(|| ApiError::bad("chat not found"))?;
        if let Some(to) = chat.migrated_to {
            return Err(ApiError::migrated(to));
        }
        let thread = params.number("message_thread_id");
        if thread.is_some_and(|thread| !chat.topics.contains(&thread)) {
            return Err(ApiError::bad("message thread not found"));
        }
        Ok((id, self.topic(id, thread)))
    }

    /// Counts a new message of the bot.
    pub(super) fn count_message(&mut self, chat: i64) -> Result<(), ApiError> {
        let Some((max, within)) = self.chat_limit else { return Ok(()) };
        let Some(chat) = self.chats.get_mut(&chat) else { return Ok(()) };
        let now = Instant::now();
        chat.sent.retain(|at| now.duration_since(*at) < within);
        if chat.sent.len() >= max {
            return Err(ApiError::too_many(within.as_secs().max(1)));
        }
        chat.sent.push_back(now);
        Ok(())
    }

    /// Returns a message to which another one replies, without the one that it replies to.
    pub(super) fn replied(&self, chat: i64, message: Option<i64>) -> Value {
        let found = message.and_then(|id| self.chats.get(&chat)?.messages.get(&id)).cloned();
        let mut found = found.unwrap_or_default();
        if let Some(found) = found.as_object_mut() {
            found.remove("reply_to_message");
        }
        found
    }
}
