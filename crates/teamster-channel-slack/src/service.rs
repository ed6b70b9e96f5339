//! The state of the channel.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::{Answered, Api};
use crate::config::{ConfigError, SlackConfig};
use crate::error::CallError;
use crate::threads::Threads;
use crate::types::Bot;

/// A Slack app as a channel.
#[derive(Debug)]
pub struct SlackChannel {
    config: SlackConfig,
    api: Api,
    threads: Mutex<Threads>,
}

impl SlackChannel {
    /// Creates the channel. The service is not called.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(config: SlackConfig) -> Result<Self, ConfigError> {
        let api = Api::new(&config)?;
        Ok(Self { config, api, threads: Mutex::default() })
    }

    pub(crate) const fn config(&self) -> &SlackConfig {
        &self.config
    }

    pub(crate) const fn api(&self) -> &Api {
        &self.api
    }

    pub(crate) fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bot of the token, and the scopes of the token.
    pub(crate) async fn bot(&self) -> Result<Answered<Bot>, CallError> {
        self.api.auth_test().await
    }
}
