//! Slash commands, buttons and forms: what people do, and what the bot answers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::body::Sent;
use super::bot::{APPLICATION_ID, bot};
use super::error::ApiError;
use super::messages::{checked, components};
use super::pending::Pending;
use super::person::Person;
use super::values::id_of;
use super::world::World;

/// The time for the first answer.
const ANSWER_TIME: Duration = Duration::from_secs(3);

/// A message that only the person sees.
const ONLY_YOU: u64 = 1 << 6;

impl World {
    /// A person uses a slash command. Returns the id of the interaction.
    pub(super) fn slash(&mut self, channel: u64, name: &str, argument: Option<&str>, by: &Person) -> u64 {
        let command = self.commands.iter().find(|command| command.get("name") == Some(&json!(name))).cloned();
        let command = command.unwrap_or_default();
        let id = command.get("id").cloned().unwrap_or_else(|| json!("1"));
        let option = command.pointer("/options/0/name").cloned().unwrap_or_else(|| json!("name"));
        let options: Vec<_> =
            argument.map(|value| json!({"name": option, "type": 3, "value": value})).into_iter().collect();
        let data = json!({"id": id, "name": name, "type": 1, "options": options});
        self.interact(2, channel, &data, None, by)
    }

    /// A person presses the first button whose label contains a text, or whose id it is. Returns the id of the interaction.
    pub(super) fn press(&mut self, channel: u64, message: u64, button: &str, by: &Person) -> u64 {
        let stored = self.message(channel, message).unwrap_or_default();
        let rows = stored.get("components").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut buttons = rows.iter().filter_map(|row| row.get("components")?.as_array()).flatten();
        let text = |one: &Value, name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let found = buttons.find(|one| text(one, "label").contains(button)).map(|one| text(one, "custom_id"));
        let data = json!({"custom_id": found.unwrap_or_else(|| button.to_owned()), "component_type": 2});
        self.interact(3, channel, &data, Some(message), by)
    }

    /// A person submits the form that an interaction has opened. Returns the id of the new interaction.
    pub(super) fn submit(&mut self, interaction: u64, text: &str, by: &Person) -> Option<u64> {
        let pending = self.interactions.get(&interaction)?;
        let (form, channel, message) = (pending.form.clone()?, pending.channel, pending.message);
        let field = form.pointer("/components/0/components/0/custom_id").cloned()?;
        let row = json!({"type": 1, "components": [{"type": 4, "custom_id": field, "value": text}]});
        let data = json!({"custom_id": form.get("custom_id").cloned()?, "components": [row]});
        Some(self.interact(5, channel, &data, message, by))
    }

    fn interact(&mut self, kind: u8, channel: u64, data: &Value, message: Option<u64>, by: &Person) -> u64 {
        let id = self.next_id();
        let token = format!("interaction-token-{id}");
        let guild = self.channels.get(&channel).and_then(|channel| channel.guild);
        let shown = message.and_then(|message| self.message(channel, message).ok());
        let mut event = json!({"id": id.to_string(), "application_id": APPLICATION_ID.to_string(), "type": kind,
            "data": data, "token": token, "version": 1, "channel_id": channel.to_string(),
            "channel": self.channel_object(channel), "locale": "en-US", "app_permissions": "0", "entitlements": [],
            "authorizing_integration_owners": {}, "attachment_size_limit": 10 << 20});
        if let Some(event) = event.as_object_mut() {
            match guild {
                Some(guild) => {
                    event.insert("guild_id".to_owned(), guild.to_string().into());
                    let member = json!({"user": by.object(), "nick": null, "roles": [], "permissions": "0",
                        "joined_at": "2020-01-01T00:00:00.000000+00:00", "deaf": false, "mute": false, "flags": 0});
                    event.insert("member".to_owned(), member);
                }
                None => {
                    event.insert("user".to_owned(), by.object());
                }
            }
            if let Some(shown) = shown {
                event.insert("message".to_owned(), shown);
            }
        }
        let pending =
            Pending { token, since: Instant::now(), message, channel, answered: None, form: None, shown: Vec::new() };
        self.interactions.insert(id, pending);
        self.dispatch("INTERACTION_CREATE", &event);
        id
    }

    /// Makes an interaction older, so that its time is over.
    pub(super) fn let_expire(&mut self, interaction: u64) {
        if let Some(pending) = self.interactions.get_mut(&interaction) {
            pending.since = pending.since.checked_sub(ANSWER_TIME).unwrap_or(pending.since);
        }
    }

    /// The first answer. A client may ask for what it has shown.
    pub(super) fn callback(&mut self, interaction: u64, token: &str, sent: &Sent) -> Result<Option<Value>, ApiError> {
        let unknown = || ApiError::new(404, 10_062, "Unknown interaction");
        let pending =
            self.interactions.get(&interaction).filter(|pending| pending.token == token).ok_or_else(unknown)?;
        if pending.answered.is_some() {
            return Err(ApiError::new(400, 40_060, "Interaction has already been acknowledged."));
        }
        if pending.since.elapsed() >= ANSWER_TIME {
            return Err(unknown());
        }
        let kind = sent.json.get("type").and_then(Value::as_u64).unwrap_or_default();
        let data = sent.json.get("data").cloned().unwrap_or_default();
        let inner = Sent { json: data.clone(), ..Sent::default() };
        let (message, channel) = (pending.message, pending.channel);
        let (mut form, mut shown) = (None, None);
        match kind {
            4 => shown = Some(self.private_message(&inner)?),
            5 => shown = Some(json!({"content": "", "flags": data.get("flags"), "is_thinking": true})),
            6 if message.is_some() => {}
            7 if message.is_some() => {
                self.edit_message(channel, message.unwrap_or_default(), &inner)?;
            }
            9 => form = Some(checked_form(data)?),
            _ => return Err(ApiError::invalid("type", "BASE_TYPE_CHOICES", "Value is not one of the kinds.")),
        }
        if let Some(pending) = self.interactions.get_mut(&interaction) {
            pending.answered = Some(kind);
            pending.form = form;
            pending.shown.extend(shown.clone());
        }
        if !matches!(sent.query("with_response"), Some("1" | "true")) {
            return Ok(None);
        }
        let message = shown.filter(|message| message.get("id").is_some());
        let has_message = message.is_some();
        let answer = json!({"id": interaction.to_string(), "type": kind, "response_message_loading": kind == 5,
            "response_message_ephemeral": true, "response_message_id": message.as_ref().and_then(|message| message.get("id"))});
        let mut response = json!({"interaction": answer});
        if let (true, Some(response)) = (has_message, response.as_object_mut()) {
            response.insert("resource".to_owned(), json!({"type": kind, "message": message}));
        }
        Ok(Some(response))
    }

    fn by_token(&mut self, token: &str) -> Result<&mut Pending, ApiError> {
        let found = self.interactions.values_mut().find(|pending| pending.token == token && pending.answered.is_some());
        found.ok_or_else(|| ApiError::new(404, 10_015, "Unknown Webhook"))
    }

    fn private_message(&mut self, sent: &Sent) -> Result<Value, ApiError> {
        let (content, rows) = (checked(sent, false)?, components(sent)?);
        let flags = sent.json.get("flags").and_then(Value::as_u64).unwrap_or_default();
        let id = self.next_id();
        Ok(json!({"id": id.to_string(), "content": content, "components": rows, "flags": flags, "author": bot(),
            "channel_id": "0", "attachments": [], "embeds": [], "mentions": [], "mention_roles": [], "type": 19,
            "timestamp": "2020-01-01T00:00:00.000000+00:00", "edited_timestamp": null, "tts": false, "pinned": false,
            "mention_everyone": false, "webhook_id": APPLICATION_ID.to_string(),
            "application_id": APPLICATION_ID.to_string()}))
    }

    /// Changes the first answer: the reply, or the message with the button.
    pub(super) fn edit_reply(&mut self, token: &str, sent: &Sent) -> Result<Value, ApiError> {
        let pending = self.by_token(token)?;
        let (channel, message) = (pending.channel, pending.message);
        if let (Some(6 | 7), Some(message)) = (pending.answered, message) {
            return self.edit_message(channel, message, sent);
        }
        let flags = pending.shown.first().and_then(|shown| shown.get("flags")?.as_u64()).unwrap_or_default();
        let mut reply = self.private_message(sent)?;
        if let Some(reply) = reply.as_object_mut() {
            reply.insert("flags".to_owned(), flags.into());
        }
        let pending = self.by_token(token)?;
        match pending.shown.first_mut() {
            Some(first) => first.clone_from(&reply),
            None => return Err(ApiError::unknown_message()),
        }
        Ok(reply)
    }

    /// Adds a message to an interaction.
    pub(super) fn follow_up(&mut self, token: &str, sent: &Sent) -> Result<Value, ApiError> {
        let channel = self.by_token(token)?.channel;
        let flags = sent.json.get("flags").and_then(Value::as_u64).unwrap_or_default();
        if flags & ONLY_YOU == 0 {
            return self.create_message(channel, sent);
        }
        let message = self.private_message(sent)?;
        self.by_token(token)?.shown.push(message.clone());
        Ok(message)
    }

    /// Returns the message that an interaction shows first.
    pub(super) fn reply_of(&mut self, token: &str) -> Result<Value, ApiError> {
        let pending = self.by_token(token)?;
        let (first, channel, message) = (pending.shown.first().cloned(), pending.channel, pending.message);
        match (first, message) {
            (Some(first), _) => Ok(first),
            (None, Some(message)) => self.message(channel, message),
            (None, None) => Err(ApiError::unknown_message()),
        }
    }

    /// Returns the last text that only the person sees.
    pub(super) fn shown_to(&self, interaction: u64) -> Option<String> {
        let mut texts =
            self.interactions.get(&interaction)?.shown.iter().filter_map(|shown| shown.get("content")?.as_str());
        texts.rfind(|text| !text.is_empty()).map(str::to_owned)
    }
}

/// Checks a form with text fields.
fn checked_form(form: Value) -> Result<Value, ApiError> {
    let length = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, |text| text.chars().count());
    let field = form.pointer("/components/0/components/0").cloned().unwrap_or_default();
    let is_valid = (1..=45).contains(&length(form.get("title")))
        && (1..=100).contains(&length(form.get("custom_id")))
        && field.get("type").and_then(id_of) == Some(4)
        && (1..=45).contains(&length(field.get("label")))
        && (1..=100).contains(&length(field.get("custom_id")));
    if is_valid { Ok(form) } else { Err(ApiError::invalid("data", "BASE_TYPE_BAD_LENGTH", "The form is invalid.")) }
}
