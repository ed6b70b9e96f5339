//! What people do.

use serde_json::{Value, json};

use super::body::SentFile;
use super::bot::{BOT_ID, bot};
use super::clock::{now_ms, timestamp};
use super::files::Upload;
use super::person::{Person, Post};
use super::values::id_of;
use super::world::World;

impl World {
    /// A person writes. Returns the id of the message.
    pub(super) fn write(&mut self, post: Post) -> u64 {
        let Post { channel, from, text, reply_to, files, has_sticker, kind, is_webhook } = post;
        let channel = channel.unwrap_or_else(|| self.direct(&from));
        let mut attachments = Vec::with_capacity(files.len());
        for Upload { name, media_type, content, stated_size } in files {
            let (id, host) = (self.next_id(), self.host.clone());
            let file = SentFile { name, media_type, bytes: content.into_bytes() };
            attachments.push(self.files.add(id, &host, file, stated_size));
        }
        let replied = reply_to.and_then(|id| self.message(channel, id).ok());
        let stickers = if has_sticker { json!([{"id": "1", "name": "wave", "format_type": 1}]) } else { json!([]) };
        let more = json!({"content": text, "attachments": attachments, "referenced_message": replied,
            "sticker_items": stickers, "type": kind.unwrap_or(if replied.is_some() { 19 } else { 0 }),
            "webhook_id": is_webhook.then_some("777")});
        let parse = ["users", "roles", "everyone"].map(str::to_owned);
        let message = self.store(channel, &from.object(), &more, &parse);
        let id = message.get("id").and_then(id_of).unwrap_or_default();
        let event = self.with_guild(channel, message);
        self.dispatch("MESSAGE_CREATE", &event);
        id
    }

    /// A person changes a text.
    pub(super) fn edit(&mut self, channel: u64, message: u64, text: &str) {
        self.change_message(channel, message, json!({"content": text, "edited_timestamp": timestamp(now_ms())}));
    }

    /// Returns a user who is mentioned.
    pub(super) fn user(&self, id: u64) -> Value {
        if id == BOT_ID {
            return bot();
        }
        let known = self.channels.values().filter_map(|channel| channel.recipient.as_ref());
        let known = known.into_iter().find(|person| person.id == id).cloned();
        known.unwrap_or_else(|| Person::new(id, &format!("User{id}"))).object()
    }
}
