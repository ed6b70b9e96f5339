//! What people do, as events and envelopes.

use serde_json::{Value, json};

use super::ids::{APP_ID, TEAM};
use super::people::{Person, Post};
use super::world::{Channel, World};

impl World {
    /// A person writes. Returns the time of the message.
    pub(super) fn write(&mut self, post: Post) -> String {
        let Post { channel, thread, from, text, files } = post;
        self.people.insert(from.id.clone(), from.clone());
        let is_direct = channel.starts_with('D');
        self.channels.entry(channel.clone()).or_insert_with(|| Channel {
            kind: if is_direct { "im" } else { "channel" }.to_owned(),
            has_bot: true,
            ..Channel::default()
        });
        let objects: Vec<_> = files.into_iter().map(|file| self.store_file(file)).collect();
        let has_files = !objects.is_empty();
        let message = json!({
            "type": "message", "user": from.id, "text": text, "thread_ts": thread,
            "subtype": has_files.then_some("file_share"), "files": has_files.then_some(objects),
            "bot_id": from.is_bot.then(|| format!("B{}", from.id)),
        });
        self.store(&channel, message)
    }

    /// The author changes a text.
    pub(super) fn edit(&mut self, channel: &str, ts: &str, text: &str) {
        let Some(message) = self.channels.get_mut(channel).and_then(|channel| channel.messages.get_mut(ts)) else {
            return;
        };
        let before = message.clone();
        if let Some(message) = message.as_object_mut() {
            let editor = message.get("user").cloned().unwrap_or_default();
            message.insert("text".to_owned(), text.into());
            message.insert("edited".to_owned(), json!({"user": editor, "ts": ts}));
        }
        let after = message.clone();
        let event = json!({"type": "message", "subtype": "message_changed", "channel": channel, "hidden": true,
            "ts": self.next_ts(), "message": after, "previous_message": before});
        self.add_event(&event);
    }

    /// The author removes a message.
    pub(super) fn remove(&mut self, channel: &str, ts: &str) {
        let removed = self.channels.get_mut(channel).and_then(|channel| channel.messages.remove(ts));
        let Some(before) = removed else { return };
        let event = json!({"type": "message", "subtype": "message_deleted", "channel": channel, "hidden": true,
            "ts": self.next_ts(), "deleted_ts": ts, "previous_message": before});
        self.add_event(&event);
    }

    /// A person presses the button with this value, or the first one whose text contains it. Returns the trigger id.
    pub(super) fn press(&mut self, channel: &str, ts: &str, button: &str, by: &Person) -> String {
        let trigger = self.trigger();
        let message = self.channels.get(channel).and_then(|channel| channel.messages.get(ts)).cloned();
        let message = message.unwrap_or_default();
        let found = buttons(&message).into_iter().find(|one| {
            let text = one.pointer("/text/text").and_then(Value::as_str);
            one["value"] == button || text.is_some_and(|text| text.contains(button))
        });
        let action = found.unwrap_or_else(|| json!({"action_id": button, "value": button, "type": "button"}));
        let mut container = json!({"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": false});
        if let (Some(container), Some(thread)) = (container.as_object_mut(), message.get("thread_ts")) {
            container.insert("thread_ts".to_owned(), thread.clone());
        }
        let payload = json!({
            "type": "block_actions", "api_app_id": APP_ID, "trigger_id": trigger, "team": {"id": TEAM},
            "user": {"id": by.id, "username": by.name.to_lowercase(), "name": by.name, "team_id": TEAM},
            "channel": {"id": channel, "name": "channel"}, "message": message, "container": container,
            "response_url": format!("{}/actions/{trigger}", self.base), "actions": [action],
        });
        self.envelopes.add("interactive", payload, false);
        trigger
    }

    /// A person sends the dialog that a press has opened. Returns the trigger id.
    pub(super) fn submit(&mut self, opened_by: &str, text: &str, by: &Person) -> String {
        let trigger = self.trigger();
        let mut view = self.views.get(opened_by).cloned().unwrap_or_else(|| json!({"callback_id": "none"}));
        let (block, element) = field(&view);
        if let Some(view) = view.as_object_mut() {
            view.insert("id".to_owned(), format!("V{opened_by}").into());
            view.insert(
                "state".to_owned(),
                json!({"values": {block: {element: {"type": "plain_text_input", "value": text}}}}),
            );
        }
        let payload = json!({
            "type": "view_submission", "api_app_id": APP_ID, "trigger_id": trigger, "team": {"id": TEAM},
            "user": {"id": by.id, "username": by.name.to_lowercase(), "name": by.name, "team_id": TEAM},
            "view": view, "response_urls": [],
        });
        self.envelopes.add("interactive", payload, true);
        trigger
    }

    /// A person uses the slash command. Returns the trigger id.
    pub(super) fn command(&mut self, channel: &str, by: &Person, text: &str) -> String {
        let trigger = self.trigger();
        let name = if channel.starts_with('D') { "directmessage" } else { "channel" };
        let payload = json!({
            "token": "verification", "team_id": TEAM, "team_domain": "testkit", "channel_id": channel,
            "channel_name": name, "user_id": by.id, "user_name": by.name, "command": "/teamster", "text": text,
            "api_app_id": APP_ID, "is_enterprise_install": "false", "trigger_id": trigger,
            "response_url": format!("{}/actions/{trigger}", self.base),
        });
        self.envelopes.add("slash_commands", payload, true);
        trigger
    }

    /// An app has acknowledged an envelope, perhaps with what a person sees.
    pub(super) fn acknowledged(&mut self, ack: &Value) {
        let Some((kind, payload)) = self.envelopes.acknowledge(ack) else { return };
        let trigger = payload.get("trigger_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if kind != "events_api" {
            let response = ack.get("payload").cloned();
            self.responses.entry(trigger).or_default().extend(response);
        }
    }

    fn trigger(&mut self) -> String {
        let number = self.next_id();
        format!("{number}.4242.secret")
    }
}

/// Returns the buttons of a message.
fn buttons(message: &Value) -> Vec<Value> {
    let blocks = message.get("blocks").and_then(Value::as_array).into_iter().flatten();
    let elements = blocks.filter(|block| block["type"] == "actions").filter_map(|block| block["elements"].as_array());
    elements.flatten().cloned().collect()
}

/// Returns the ids of the block and of the element of a dialog's first input.
fn field(view: &Value) -> (String, String) {
    let id = |pointer: &str| view.pointer(pointer).and_then(Value::as_str).unwrap_or("x").to_owned();
    (id("/blocks/0/block_id"), id("/blocks/0/element/action_id"))
}
