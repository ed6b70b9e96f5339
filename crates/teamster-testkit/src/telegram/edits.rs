//! Methods that change messages of the bot.

use serde_json::{Map, Value, json};

use super::error::ApiError;
use super::methods::{MAX_TEXT, keyboard};
use super::texts::checked;
use super::world::{BOT_ID, World};
use crate::params::Params;

impl World {
    /// Returns a message of the bot that can be edited.
    fn own(&self, params: &Params) -> Result<(i64, i64, Map<String, Value>), ApiError> {
        let (chat, _) = self.destination(params)?;
        let id = params.number("message_id").ok_or_else(|| ApiError::bad("message identifier is not specified"))?;
        let found = self.chats.get(&chat).and_then(|chat| chat.messages.get(&id)).and_then(Value::as_object);
        let found = found.ok_or_else(|| ApiError::bad("message to edit not found"))?;
        if found.get("from").and_then(|from| from.get("id")).and_then(Value::as_i64) != Some(BOT_ID) {
            return Err(ApiError::bad("message can't be edited"));
        }
        Ok((chat, id, found.clone()))
    }

    fn replace(
        &mut self,
        chat: i64,
        id: i64,
        before: &Map<String, Value>,
        after: Map<String, Value>,
    ) -> Result<Value, ApiError> {
        let is_same = |name: &str| before.get(name) == after.get(name);
        if ["text", "entities", "reply_markup"].iter().all(|name| is_same(name)) {
            let problem = "message is not modified: specified new message content and reply markup are exactly the same as a \
                           current content and reply markup of the message";
            return Err(ApiError::bad(problem));
        }
        let after = Value::Object(after);
        if let Some(chat) = self.chats.get_mut(&chat) {
            chat.messages.insert(id, after.clone());
        }
        Ok(after)
    }

    pub(super) fn edit_text(&mut self, params: &Params) -> Result<Value, ApiError> {
        let (chat, id, before) = self.own(params)?;
        if !before.contains_key("text") {
            return Err(ApiError::bad("there is no text in the message to edit"));
        }
        let text = params.text("text").unwrap_or_default();
        if text.trim().is_empty() {
            return Err(ApiError::bad("message text is empty"));
        }
        let (text, entities) = checked(text, params.json("entities"), MAX_TEXT, "message")?;
        let mut after = before.clone();
        after.insert("text".to_owned(), text.into());
        after.insert("entities".to_owned(), entities.into());
        set_keyboard(&mut after, keyboard(params)?);
        self.replace(chat, id, &before, after)
    }

    pub(super) fn edit_keyboard(&mut self, params: &Params) -> Result<Value, ApiError> {
        let (chat, id, before) = self.own(params)?;
        let mut after = before.clone();
        set_keyboard(&mut after, keyboard(params)?);
        self.replace(chat, id, &before, after)
    }

    pub(super) fn delete_message(&mut self, params: &Params) -> Result<Value, ApiError> {
        let (chat, _) = self.destination(params)?;
        let id = params.number("message_id").unwrap_or_default();
        if self.remove(chat, id) { Ok(json!(true)) } else { Err(ApiError::bad("message to delete not found")) }
    }
}

/// Without a keyboard, the buttons are removed.
fn set_keyboard(message: &mut Map<String, Value>, keyboard: Option<Value>) {
    message.remove("reply_markup");
    if let Some(keyboard) = keyboard {
        message.insert("reply_markup".to_owned(), keyboard);
    }
}
