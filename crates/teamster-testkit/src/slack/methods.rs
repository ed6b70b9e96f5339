//! The methods of the Web API that are not about messages and files.

use serde_json::{Value, json};

use super::error::ApiError;
use super::ids::{BOT_ID, BOT_USER, TEAM};
use super::world::{Call, World};
use crate::params::Params;

/// The largest dialog metadata.
const MAX_METADATA: usize = 3_000;

impl World {
    /// Records a call.
    pub(super) fn record(&mut self, method: &str, params: &Params) {
        let mut parameters = params.values.clone();
        parameters.remove("token");
        self.calls.push(Call { method: method.to_owned(), parameters: Value::Object(parameters) });
    }

    /// Checks the token of a call, and its scopes.
    pub(super) fn authorize(&self, method: &str, token: Option<&str>) -> Result<(), ApiError> {
        let token = token.ok_or_else(|| ApiError::new("not_authed"))?;
        let (is_bot, is_app) = (token == self.bot_token, token == self.app_token);
        if !is_bot && !is_app {
            return Err(ApiError::new("invalid_auth"));
        }
        if (method == "apps.connections.open") != is_app {
            return Err(ApiError::new("not_allowed_token_type"));
        }
        match scope_of(method) {
            Some(scope) if !self.scopes.contains(scope) => Err(ApiError::missing_scope(scope, &self.scope_list())),
            _ => Ok(()),
        }
    }

    /// Calls a method.
    pub(super) fn call(&mut self, method: &str, params: &Params) -> Result<Value, ApiError> {
        match method {
            "auth.test" => Ok(json!({"url": "https://testkit.slack.com/", "team": "Testkit", "user": "teamster",
                "team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT_ID, "is_enterprise_install": false})),
            "api.test" => Ok(json!({})),
            "bots.info" => Ok(json!({"bot": {"id": BOT_ID, "name": "teamster", "deleted": false,
                "app_id": self.bot_app, "user_id": BOT_USER}})),
            "apps.connections.open" => Ok(self.open_connection()),
            "users.info" => self.user(params),
            "conversations.info" => self.channel_info(params),
            "conversations.history" => self.history(params, false),
            "conversations.replies" => self.history(params, true),
            "chat.postMessage" => self.post(params),
            "chat.update" => self.update(params),
            "chat.delete" => self.delete(params),
            "views.open" => self.open_view(params),
            "files.info" => self.file_info(params),
            "files.getUploadURLExternal" => self.upload_url(params),
            "files.completeUploadExternal" => self.complete_upload(params),
            _ => Err(ApiError::new("unknown_method")),
        }
    }

    fn open_connection(&mut self) -> Value {
        let ticket = self.envelopes.issue_ticket();
        json!({"url": format!("{}/link?ticket={ticket}&app_id=testkit", self.socket_base)})
    }

    fn user(&self, params: &Params) -> Result<Value, ApiError> {
        let found = params.text("user").and_then(|id| self.people.get(id));
        found.map(|person| json!({"user": person.object()})).ok_or_else(|| ApiError::new("user_not_found"))
    }

    fn channel_info(&self, params: &Params) -> Result<Value, ApiError> {
        let id = params.text("channel").unwrap_or_default();
        let channel = self.channels.get(id).ok_or_else(|| ApiError::new("channel_not_found"))?;
        Ok(json!({"channel": {"id": id, "is_im": channel.kind == "im", "is_member": channel.has_bot}}))
    }

    fn open_view(&mut self, params: &Params) -> Result<Value, ApiError> {
        let trigger = params.text("trigger_id").unwrap_or_default().to_owned();
        let view = params.json("view").filter(Value::is_object);
        let view = view.ok_or_else(|| ApiError::detailed("invalid_arguments", "missing view"))?;
        let text = |pointer: &str| view.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let is_title = (1..=24).contains(&text("/title/text").chars().count());
        if text("/type") != "modal" || !is_title || text("/private_metadata").chars().count() > MAX_METADATA {
            return Err(ApiError::detailed("invalid_arguments", "invalid view"));
        }
        if !trigger.ends_with(".secret") {
            return Err(ApiError::new("invalid_trigger_id"));
        }
        if self.views.contains_key(&trigger) {
            return Err(ApiError::new("exchanged_trigger_id"));
        }
        self.views.insert(trigger, view.clone());
        Ok(json!({"view": view}))
    }
}

/// Returns the scope that a method needs.
fn scope_of(method: &str) -> Option<&'static str> {
    Some(match method {
        "chat.postMessage" | "chat.update" | "chat.delete" => "chat:write",
        "users.info" | "bots.info" => "users:read",
        "conversations.history" | "conversations.replies" | "conversations.info" => "channels:history",
        "files.info" => "files:read",
        "files.getUploadURLExternal" | "files.completeUploadExternal" => "files:write",
        _ => return None,
    })
}
