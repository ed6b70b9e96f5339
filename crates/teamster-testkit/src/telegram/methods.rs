//! The methods of the Bot API, except the poll and the edits.

use serde_json::{Value, json};

use super::error::ApiError;
use super::files::MAX_DOWNLOAD;
use super::texts::checked;
use super::world::{Call, World, bot};
use crate::params::{Params, SentFile};

/// The longest text of a message in UTF-16 units.
pub(super) const MAX_TEXT: usize = 4_096;

/// The longest caption.
const MAX_CAPTION: usize = 1_024;

/// The largest file that a bot can send.
const MAX_UPLOAD: usize = 50 << 20;

/// The largest photo.
const MAX_PHOTO: usize = 10 << 20;

impl World {
    /// Records a call.
    pub(super) fn record(&mut self, method: &str, params: &Params) {
        self.calls.push(Call { method: method.to_owned(), parameters: Value::Object(params.values.clone()) });
    }

    pub(super) fn me(&self) -> Value {
        let mut me = bot();
        if let Some(me) = me.as_object_mut() {
            me.insert("can_join_groups".to_owned(), true.into());
            me.insert("can_read_all_group_messages".to_owned(), (!self.has_privacy).into());
            me.insert("supports_inline_queries".to_owned(), false.into());
        }
        me
    }

    pub(super) fn webhook_info(&self) -> Value {
        json!({"url": self.webhook, "has_custom_certificate": false, "pending_update_count": self.updates.len()})
    }

    pub(super) fn set_webhook(&mut self, params: &Params, is_set: bool) -> Value {
        self.webhook = if is_set { params.text("url").unwrap_or_default().to_owned() } else { String::new() };
        if params.json("drop_pending_updates") == Some(json!(true)) {
            self.updates.clear();
        }
        json!(true)
    }

    pub(super) fn set_commands(&mut self, params: &Params) -> Result<Value, ApiError> {
        let commands = params.json("commands").unwrap_or_else(|| json!([]));
        let list = commands.as_array().ok_or_else(|| ApiError::bad("can't parse commands"))?;
        let is_name = |name: &str| {
            let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            (1..=32).contains(&name.len()) && name.bytes().all(is_valid)
        };
        let is_valid = |command: &Value| {
            let text = |name: &str| command.get(name).and_then(Value::as_str).unwrap_or_default();
            is_name(text("command")) && (1..=256).contains(&text("description").chars().count())
        };
        if list.len() > 100 || !list.iter().all(is_valid) {
            return Err(ApiError::bad("BOT_COMMAND_INVALID"));
        }
        self.commands = commands;
        Ok(json!(true))
    }

    pub(super) fn send_message(&mut self, params: &Params) -> Result<Value, ApiError> {
        let (chat, topic) = self.destination(params)?;
        if params.values.contains_key("parse_mode") {
            return Err(ApiError::bad("unsupported parse_mode"));
        }
        let text = params.text("text").unwrap_or_default();
        if text.trim().is_empty() {
            return Err(ApiError::bad("message text is empty"));
        }
        let (text, entities) = checked(text, params.json("entities"), MAX_TEXT, "message")?;
        let keyboard = keyboard(params)?;
        self.count_message(chat)?;
        let mut more = json!({"text": text, "entities": entities, "reply_markup": keyboard,
            "reply_to_message": self.replied(chat, reply(params))});
        extend(&mut more, topic);
        Ok(self.store(chat, &bot(), more))
    }

    /// Sends a document or a photo.
    pub(super) fn send_file(&mut self, params: &Params, field: &'static str) -> Result<Value, ApiError> {
        let (chat, topic) = self.destination(params)?;
        let is_photo = field == "photo";
        let file = self.file_of(params, field)?;
        if file.bytes.len() > MAX_UPLOAD {
            return Err(ApiError::new(413, "Request Entity Too Large"));
        }
        let is_image = [&b"\x89PNG"[..], b"\xff\xd8", b"RIFF"].iter().any(|start| file.bytes.starts_with(start));
        if is_photo && (!is_image || file.bytes.len() > MAX_PHOTO) {
            return Err(ApiError::bad("IMAGE_PROCESS_FAILED"));
        }
        let caption = params.text("caption").unwrap_or_default();
        let (caption, entities) = checked(caption, params.json("caption_entities"), MAX_CAPTION, "message caption")?;
        let keyboard = keyboard(params)?;
        self.count_message(chat)?;
        let stored = self.files.sent(file, is_photo);
        let mut more = json!({field: stored, "reply_markup": keyboard,
            "reply_to_message": self.replied(chat, reply(params))});
        if !caption.is_empty() {
            extend(&mut more, json!({"caption": caption, "caption_entities": entities}));
        }
        extend(&mut more, topic);
        Ok(self.store(chat, &bot(), more))
    }

    /// Returns the file of a call: its own, one that it attaches, or one that the service has.
    fn file_of(&self, params: &Params, field: &str) -> Result<SentFile, ApiError> {
        let reference = params.text(field);
        let name = reference.and_then(|reference| reference.strip_prefix("attach://")).unwrap_or(field);
        if let Some(file) = params.files.get(name) {
            return Ok(file.clone());
        }
        let id = reference.ok_or_else(|| ApiError::bad(format!("there is no {field} in the request")))?;
        let bytes = self.files.content(id).ok_or_else(|| ApiError::bad("wrong file identifier/HTTP URL specified"))?;
        Ok(SentFile { name: "file".to_owned(), media_type: "application/octet-stream".to_owned(), bytes })
    }

    pub(super) fn chat_action(&self, params: &Params) -> Result<Value, ApiError> {
        self.destination(params)?;
        match params.text("action") {
            Some("typing" | "upload_photo" | "upload_document") => Ok(json!(true)),
            _ => Err(ApiError::bad("wrong parameter action in request")),
        }
    }

    pub(super) fn get_file(&self, params: &Params) -> Result<Value, ApiError> {
        let id = params.text("file_id").unwrap_or_default();
        let wrong = || ApiError::bad("wrong file_id or the file is temporarily unavailable");
        let (size, path) = self.files.find(id).ok_or_else(wrong)?;
        if size > MAX_DOWNLOAD {
            return Err(ApiError::bad("file is too big"));
        }
        Ok(json!({"file_id": id, "file_unique_id": id, "file_size": size, "file_path": path}))
    }

    pub(super) fn answer_query(&mut self, params: &Params) -> Result<Value, ApiError> {
        let id = params.text("callback_query_id").unwrap_or_default();
        let text = params.text("text").unwrap_or_default().to_owned();
        match self.queries.get_mut(id) {
            Some(_) if text.chars().count() > 200 => Err(ApiError::bad("MESSAGE_TOO_LONG")),
            Some(answer @ None) => {
                *answer = Some(text);
                Ok(json!(true))
            }
            _ => Err(ApiError::bad("query is too old and response timeout expired or query ID is invalid")),
        }
    }
}

/// Returns the message that a call replies to.
fn reply(params: &Params) -> Option<i64> {
    params.json("reply_parameters").and_then(|reply| reply.get("message_id")?.as_i64())
}

/// Checks the buttons of a call.
pub(super) fn keyboard(params: &Params) -> Result<Option<Value>, ApiError> {
    let Some(markup) = params.json("reply_markup").filter(|markup| !markup.is_null()) else { return Ok(None) };
    let Some(rows) = markup.get("inline_keyboard").and_then(Value::as_array) else {
        // A keyboard of another kind is shown in clients only.
        return Ok(None);
    };
    for button in rows.iter().filter_map(Value::as_array).flatten() {
        let text = |name: &str| button.get(name).and_then(Value::as_str);
        if text("text").is_none_or(str::is_empty) {
            return Err(ApiError::bad("can't parse inline keyboard button: text is empty"));
        }
        match (text("callback_data"), text("url")) {
            (Some(data), _) if (1..=64).contains(&data.len()) => {}
            (None, Some(_)) => {}
            _ => return Err(ApiError::bad("BUTTON_DATA_INVALID")),
        }
    }
    Ok((!rows.is_empty()).then_some(markup))
}

fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}
