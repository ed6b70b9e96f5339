//! The configuration of hooks.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use teamster::text::without_bom;
use teamster_channel::signature::WebhookSecret;

use super::event::HookEventKind;

/// The longest time limit: a message is not accepted while its hook runs.
const MAX_TIMEOUT: Duration = Duration::from_mins(10);

/// A hook: a command or a webhook, which is called for events.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HookConfig {
    /// The name in logs
    pub name: String,
    /// The events for which it is called
    pub events: Vec<HookEventKind>,
    /// The program and its arguments; the event is JSON on stdin
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment variables for the command, besides PATH, HOME and those of the user, locale and time zone
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The working directory of the command
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The URL of the webhook, instead of a command
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The secret that signs webhooks: `whsec_` and base64, or a text
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretText>,
    /// The environment variable with the secret
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// The file with the secret
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
    /// The time limit of a call
    #[serde(with = "crate::duration")]
    #[schemars(with = "String")]
    pub timeout: Duration,
    /// If the hook fails: open accepts the message, closed refuses it until the hook works
    pub on_failure: OnFailure,
}

/// What happens to a message whose hook fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The message is accepted as if there were no hook.
    #[default]
    Open,
    /// The message is refused, and its sender can send it again later.
    Closed,
}

/// A secret in a configuration. It is never printed.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(secret)")
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretText")
    }
}

/// Why a hook cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hook {hook:?}: {key} {problem}")]
pub struct HookConfigError {
    /// The name of the hook.
    pub hook: String,
    /// The key of its table.
    pub key: &'static str,
    /// What is wrong, and how to correct it.
    pub problem: String,
}

impl Default for HookConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            events: Vec::new(),
            command: Vec::new(),
            env: Vec::new(),
            directory: None,
            url: None,
            secret: None,
            secret_env: None,
            secret_file: None,
            timeout: Duration::from_secs(10),
            on_failure: OnFailure::Open,
        }
    }
}

impl HookConfig {
    /// Checks the values, without starting the command or reading the secret.
    ///
    /// # Errors
    /// A value is missing, or does not fit the others.
    pub fn check(&self) -> Result<(), HookConfigError> {
        let wrong = |key, problem: &str| Err(self.error(key, problem));
        if self.name.is_empty() || self.name.chars().any(char::is_control) {
            return wrong("name", "must be a name for logs");
        }
        if self.events.is_empty() {
            return wrong("events", "must name at least one event, such as \"turn_finished\"");
        }
        if self.on_failure == OnFailure::Closed && !self.events.contains(&HookEventKind::MessageAccepted) {
            return wrong(
                "on_failure",
                "can be \"closed\" only for the event message_accepted: other events do not wait for their hooks",
            );
        }
        if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            return wrong("timeout", "must be between 1ms and 10m");
        }
        match (&self.url, self.command.as_slice()) {
            (None, [program, ..]) if !program.is_empty() => self.check_command(),
            (Some(url), []) => self.check_webhook(url),
            _ => wrong("command", "or url must be set, and not both"),
        }
    }

    fn check_command(&self) -> Result<(), HookConfigError> {
        let has_secret = self.secret.is_some() || self.secret_env.is_some() || self.secret_file.is_some();
        if has_secret {
            return Err(self.error("secret", "signs webhooks; pass a secret to a command by env"));
        }
        Ok(())
    }

    fn check_webhook(&self, url: &str) -> Result<(), HookConfigError> {
        let is_http = reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_http {
            return Err(self.error("url", "must be a URL that starts with https:// or http://"));
        }
        if !self.env.is_empty() || self.directory.is_some() {
            return Err(self.error("env", "and directory are for commands"));
        }
        let sources = [self.secret.is_some(), self.secret_env.is_some(), self.secret_file.is_some()];
        if sources.into_iter().filter(|is_set| *is_set).count() != 1 {
            return Err(
                self.error("secret", "must be set for a webhook: exactly one of secret, secret_env and secret_file")
            );
        }
        Ok(())
    }

    /// Reads the secret of a webhook. It is read for each call, so that it can be replaced while the gateway runs.
    pub(super) fn read_secret(&self) -> Result<WebhookSecret, HookConfigError> {
        let (key, text) = if let Some(SecretText(text)) = &self.secret {
            ("secret", text.clone())
        } else if let Some(name) = &self.secret_env {
            let missing = |_| self.error("secret_env", format!("names the variable {name}, which is not set"));
            ("secret_env", std::env::var(name).map_err(missing)?)
        } else if let Some(file) = &self.secret_file {
            let unreadable = |error| self.error("secret_file", format!("{} cannot be read: {error}", file.display()));
            ("secret_file", std::fs::read_to_string(file).map_err(unreadable)?)
        } else {
            return Err(self.error("secret", "is missing"));
        };
        WebhookSecret::parse(without_bom(&text).trim()).map_err(|error| self.error(key, format!("is invalid: {error}")))
    }

    pub(super) fn error(&self, key: &'static str, problem: impl Into<String>) -> HookConfigError {
        HookConfigError { hook: self.name.clone(), key, problem: problem.into() }
    }
}
