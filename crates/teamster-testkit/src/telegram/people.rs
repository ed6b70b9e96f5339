//! What people do.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::files::Upload;
use super::texts::found;
use super::world::{BOT_ID, BOT_NAME, World};

/// A person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The id, which is also the id of the chat with the bot.
    pub id: i64,
    /// The name.
    pub name: String,
    /// Whether it is another bot.
    #[serde(default)]
    pub is_bot: bool,
}

/// What a person writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Post {
    /// The chat.
    pub chat: i64,
    /// The topic.
    #[serde(default)]
    pub thread: Option<i64>,
    /// Who writes.
    pub from: Person,
    /// The text, or the caption of the file.
    #[serde(default)]
    pub text: String,
    /// The message that it replies to.
    #[serde(default)]
    pub reply_to: Option<i64>,
    /// The album of the file.
    #[serde(default)]
    pub album: Option<String>,
    /// The file.
    #[serde(default)]
    pub file: Option<Upload>,
}

impl Person {
    /// Describes a person.
    pub fn new(id: i64, name: &str) -> Self {
        Self { id, name: name.to_owned(), is_bot: false }
    }

    fn object(&self) -> Value {
        json!({"id": self.id, "is_bot": self.is_bot, "first_name": self.name})
    }
}

impl Post {
    /// A direct message to the bot.
    pub fn private(from: &Person, text: &str) -> Self {
        Self::to(from.id, from, text)
    }

    /// A message in a chat.
    pub fn to(chat: i64, from: &Person, text: &str) -> Self {
        let text = text.to_owned();
        Self { chat, thread: None, from: from.clone(), text, reply_to: None, album: None, file: None }
    }

    /// Writes in a topic.
    #[must_use]
    pub fn thread(mut self, thread: i64) -> Self {
        self.thread = Some(thread);
        self
    }

    /// Replies to a message.
    #[must_use]
    pub fn reply_to(mut self, message: i64) -> Self {
        self.reply_to = Some(message);
        self
    }

    /// Has a document.
    #[must_use]
    pub fn document(mut self, name: &str, content: &str) -> Self {
        let (name, media_type) = (name.to_owned(), "text/plain".to_owned());
        self.file = Some(Upload { name, media_type, content: content.to_owned(), stated_size: None });
        self
    }

    /// Has a photo.
    #[must_use]
    pub fn photo(mut self, content: &str) -> Self {
        let (name, media_type) = (String::new(), String::new());
        self.file = Some(Upload { name, media_type, content: content.to_owned(), stated_size: None });
        self
    }

    /// Belongs to an album.
    #[must_use]
    pub fn album(mut self, id: &str) -> Self {
        self.album = Some(id.to_owned());
        self
    }

    /// States another size of the file than it has.
    #[must_use]
    pub fn stated_size(mut self, size: u64) -> Self {
        if let Some(file) = &mut self.file {
            file.stated_size = Some(size);
        }
        self
    }
}

impl World {
    /// A person writes. Returns the id of the message.
    pub(super) fn write(&mut self, post: Post) -> i64 {
        let Post { chat, thread, from, text, reply_to, album, file } = post;
        let mut more = self.topic(chat, thread);
        if let Some(more) = more.as_object_mut() {
            let (name, entities) = if file.is_some() { ("caption", "caption_entities") } else { ("text", "entities") };
            if !text.is_empty() {
                more.insert(name.to_owned(), text.clone().into());
                more.insert(entities.to_owned(), found(&text).into());
            }
            more.insert("reply_to_message".to_owned(), self.replied(chat, reply_to));
            more.insert("media_group_id".to_owned(), album.into());
            if let Some(file) = file {
                let (field, object) = self.files.received(file);
                more.insert(field.to_owned(), object);
            }
        }
        let message = self.store(chat, &from.object(), more);
        let id = message.get("message_id").and_then(Value::as_i64).unwrap_or_default();
        if self.is_visible(chat, &message) {
            self.add_update("message", message);
        }
        id
    }

    /// A person changes a text or a caption.
    pub(super) fn edit(&mut self, chat: i64, message: i64, text: &str) {
        let stored = self.chats.get_mut(&chat).and_then(|chat| chat.messages.get_mut(&message));
        let Some(stored) = stored.and_then(Value::as_object_mut) else { return };
        let (name, entities) =
            if stored.contains_key("text") { ("text", "entities") } else { ("caption", "caption_entities") };
        stored.insert(name.to_owned(), text.into());
        stored.insert(entities.to_owned(), found(text).into());
        let edited = Value::Object(stored.clone());
        if self.is_visible(chat, &edited) {
            self.add_update("edited_message", edited);
        }
    }

    /// A person presses a button, named by its data or a part of its text. Returns the id of the query.
    pub(super) fn press(&mut self, chat: i64, message: i64, button: &str, by: &Person) -> String {
        let stored = self.replied(chat, Some(message));
        let rows =
            stored.pointer("/reply_markup/inline_keyboard").and_then(Value::as_array).cloned().unwrap_or_default();
        let buttons: Vec<_> = rows.iter().filter_map(Value::as_array).flatten().collect();
        let data_of = |one: &Value| one.get("callback_data").and_then(Value::as_str).map(str::to_owned);
        let is_meant =
            |one: &&&Value| one.get("text").and_then(Value::as_str).is_some_and(|text| text.contains(button));
        let data = buttons.iter().find(is_meant).and_then(|one| data_of(one)).unwrap_or_else(|| button.to_owned());
        let id = format!("query-{}", self.queries.len() + 1);
        self.queries.insert(id.clone(), None);
        let query = json!({"id": id, "from": by.object(), "chat_instance": "1", "data": data, "message": stored});
        self.add_update("callback_query", query);
        id
    }

    /// Returns whether the bot gets a message. In privacy mode it gets what concerns it.
    fn is_visible(&self, chat: i64, message: &Value) -> bool {
        let is_private = self.chats.get(&chat).is_none_or(|chat| chat.kind == "private");
        let texts = ["text", "caption"].iter().filter_map(|name| message.get(name)?.as_str());
        let names_bot = texts.into_iter().any(|text| text.contains(&format!("@{BOT_NAME}")));
        let replies = message.pointer("/reply_to_message/from/id").and_then(Value::as_i64) == Some(BOT_ID);
        is_private || !self.has_privacy || names_bot || replies
    }
}
