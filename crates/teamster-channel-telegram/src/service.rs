//! The state of the channel, and the checks of its service.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;
use teamster_channel::ChannelError;

use crate::aliases::Aliases;
use crate::api::{Api, CALL_TIMEOUT, CallError};
use crate::config::{ConfigError, Groups, TelegramConfig};
use crate::limits::Limits;
use crate::types::{Bot, WebhookInfo};

/// The name of the service in errors.
const SERVICE: &str = "Telegram";

/// What a webhook of the bot means for the channel.
pub(crate) const HAS_WEBHOOK: &str = "the Telegram bot has a webhook, so it cannot be polled: another program uses its token. \
                                      Give that program another bot, or remove the webhook with deleteWebhook";

/// A Telegram bot as a channel.
#[derive(Debug)]
pub struct TelegramChannel {
    config: TelegramConfig,
    api: Api,
    aliases: Mutex<Aliases>,
    limits: Mutex<Limits>,
}

impl TelegramChannel {
    /// Creates the channel. The service is not called.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(config: TelegramConfig) -> Result<Self, ConfigError> {
        let api = Api::new(&config)?;
        Ok(Self { config, api, aliases: Mutex::default(), limits: Mutex::default() })
    }

    pub(crate) const fn config(&self) -> &TelegramConfig {
        &self.config
    }

    pub(crate) const fn api(&self) -> &Api {
        &self.api
    }

    pub(crate) fn aliases(&self) -> MutexGuard<'_, Aliases> {
        self.aliases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bot of the token.
    pub(crate) async fn bot(&self) -> Result<Bot, CallError> {
        self.api.call("getMe", &json!({}), CALL_TIMEOUT).await
    }

    /// Checks the token, that no webhook is set, and that the bot can read what the configuration wants.
    pub(crate) async fn check_service(&self) -> Result<(), ChannelError> {
        let bot = self.bot().await.map_err(|error| channel_error(&error))?;
        let webhook: WebhookInfo =
            self.api.call("getWebhookInfo", &json!({}), CALL_TIMEOUT).await.map_err(|error| channel_error(&error))?;
        if !webhook.url.is_empty() {
            return Err(ChannelError::Setting(HAS_WEBHOOK.to_owned()));
        }
        if self.config.groups == Groups::All && !bot.can_read_all_group_messages {
            let problem = "the Telegram bot has privacy mode, so it does not get all messages of groups as groups = \"all\" \
                           demands: turn it off with /setprivacy at @BotFather, then remove the bot from its groups and add it \
                           again";
            return Err(ChannelError::Setting(problem.to_owned()));
        }
        Ok(())
    }
}

/// Returns what a failed call means for the whole channel.
pub(crate) fn channel_error(error: &CallError) -> ChannelError {
    match error.code() {
        Some(401 | 404) => ChannelError::Credentials { service: SERVICE, reason: error.to_string() },
        _ => ChannelError::Unreachable { service: SERVICE, reason: error.to_string() },
    }
}
