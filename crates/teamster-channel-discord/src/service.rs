//! The state of the channel, and the checks of its service.

use std::sync::Mutex;

use reqwest::Method;
use serde_json::{Value, json};
use teamster_channel::{COMMANDS, ChannelError, CommandSpec};

use crate::api::{Api, Body, Call, CallError};
use crate::config::{ConfigError, DiscordConfig, Servers};
use crate::known::Known;
use crate::permissions::{all_permissions, missing};
use crate::types::{Application, GatewayInfo, Guild, User};

/// The name of the service in errors.
const SERVICE: &str = "Discord";

/// The page with the settings of applications.
pub(crate) const PORTAL: &str = "https://discord.com/developers/applications";

/// The flags of an application that has the intent for the contents of messages: granted, or for fewer than 100 servers.
const HAS_CONTENT: u64 = (1 << 18) | (1 << 19);

/// The kind of an option of a command that is a text.
const TEXT_OPTION: u8 = 3;

/// A Discord bot as a channel.
#[derive(Debug)]
pub struct DiscordChannel {
    config: DiscordConfig,
    api: Api,
    known: Mutex<Known>,
}

impl DiscordChannel {
    /// Creates the channel. The service is not called.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(config: DiscordConfig) -> Result<Self, ConfigError> {
        let api = Api::new(&config)?;
        if let Some(url) = &config.gateway_url {
            config.check_gateway_url(url)?;
        }
        if config.threads && !config.message_content {
            return Err(ConfigError::ThreadsWithoutContent);
        }
        Ok(Self { config, api, known: Mutex::default() })
    }

    pub(crate) const fn config(&self) -> &DiscordConfig {
        &self.config
    }

    pub(crate) const fn api(&self) -> &Api {
        &self.api
    }

    pub(crate) const fn known(&self) -> &Mutex<Known> {
        &self.known
    }

    /// Returns the bot of the token.
    pub(crate) async fn bot(&self) -> Result<User, CallError> {
        self.api.call(&Call::new(Method::GET, "me", "", vec!["users", "@me"]), Body::None).await
    }

    /// Returns the application of the bot.
    pub(crate) async fn application(&self) -> Result<Application, CallError> {
        self.api.call(&Call::new(Method::GET, "application", "", vec!["applications", "@me"]), Body::None).await
    }

    /// Returns where the gateway is, and how many sessions may be started.
    pub(crate) async fn gateway(&self) -> Result<GatewayInfo, CallError> {
        self.api.call(&Call::new(Method::GET, "gateway", "", vec!["gateway", "bot"]), Body::None).await
    }

    /// Registers the slash commands, if the service has others. All commands of the application are replaced.
    pub(crate) async fn register_commands(&self, application: &str) -> Result<(), CallError> {
        let path = || vec!["applications", application, "commands"];
        let registered: Value = self.api.call(&Call::new(Method::GET, "commands", "", path()), Body::None).await?;
        let wanted: Vec<_> = COMMANDS.iter().map(command).collect();
        if are_registered(&registered, &wanted) {
            return Ok(());
        }
        let body = Value::Array(wanted);
        self.api.call::<Value>(&Call::new(Method::PUT, "setCommands", "", path()), Body::Json(&body)).await.map(|_| ())
    }

    /// Checks the token, the intents of the application, the starts that are left, and what the bot may do in its servers.
    pub(crate) async fn check_service(&self) -> Result<(), ChannelError> {
        let failed = |error: CallError| channel_error(&error);
        self.bot().await.map_err(failed)?;
        let application = self.application().await.map_err(failed)?;
        if self.config.wants_content() && application.flags & HAS_CONTENT == 0 {
            return Err(ChannelError::Setting(no_content_intent()));
        }
        let gateway = self.gateway().await.map_err(failed)?;
        if gateway.session_start_limit.remaining == 0 {
            let minutes = gateway.session_start_limit.reset_after / 60_000 + 1;
            let problem = format!(
                "the Discord bot has used all its starts of a day; it can start again in {minutes} minutes: stop other \
                 programs that use its token"
            );
            return Err(ChannelError::Setting(problem));
        }
        if self.config.servers == Servers::Off {
            return Ok(());
        }
        let call = Call::new(Method::GET, "guilds", "", vec!["users", "@me", "guilds"]);
        let guilds: Vec<Guild> = self.api.call(&call, Body::None).await.map_err(failed)?;
        for guild in &guilds {
            let missing = missing(&guild.permissions, self.config.threads);
            if !missing.is_empty() {
                let problem = format!(
                    "the Discord bot may not {} in the server {:?}: grant its role these permissions (Server Settings, \
                     Roles), or invite the bot again with {}",
                    missing.join(", "),
                    guild.name,
                    invitation(&application.id, self.config.threads)
                );
                return Err(ChannelError::Setting(problem));
            }
        }
        Ok(())
    }
}

/// Returns the URL that invites the bot to a server with all permissions that it needs.
fn invitation(application: &str, threads: bool) -> String {
    let permissions = all_permissions(threads);
    format!(
        "https://discord.com/oauth2/authorize?client_id={application}&scope=bot%20applications.commands&permissions={permissions}"
    )
}

/// What a missing intent means, and how to get it.
pub(crate) fn no_content_intent() -> String {
    format!(
        "the Discord application has no Message Content Intent: open {PORTAL}, select the application, then Bot, and turn \
         on Message Content Intent under Privileged Gateway Intents; or set message_content = false"
    )
}

/// Returns what a failed call means for the whole channel.
pub(crate) fn channel_error(error: &CallError) -> ChannelError {
    match error.status() {
        Some(401) => rejected(&error.to_string()),
        _ => ChannelError::Unreachable { service: SERVICE, reason: error.to_string() },
    }
}

/// The service rejects the token.
pub(crate) fn rejected(answer: &str) -> ChannelError {
    let reason = format!(
        "{answer}. Open {PORTAL}, select the application, then Bot, get a token with Reset Token, and store it for the gateway"
    );
    ChannelError::Credentials { service: SERVICE, reason }
}

/// Returns a command as the service registers it: for servers and for direct messages.
fn command(spec: &CommandSpec) -> Value {
    let option = |name: &str| json!({"type": TEXT_OPTION, "name": name, "description": format!("The {name}"), "required": false});
    let options: Vec<_> = spec.argument.map(option).into_iter().collect();
    json!({"type": 1, "name": spec.name, "description": spec.description, "options": options, "contexts": [0, 1],
        "integration_types": [0]})
}

/// Returns whether the registered commands are the wanted ones. The service adds fields of its own.
fn are_registered(registered: &Value, wanted: &[Value]) -> bool {
    let registered = registered.as_array().map(Vec::as_slice).unwrap_or_default();
    let essence = |command: &Value| {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let options = command.get("options").and_then(Value::as_array).into_iter().flatten();
        let options: Vec<_> = options.map(|option| (text(option, "name"), text(option, "description"))).collect();
        (text(command, "name"), text(command, "description"), options)
    };
    registered.len() == wanted.len()
        && wanted.iter().all(|one| registered.iter().any(|other| essence(one) == essence(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_registered_if_a_name_a_text_or_an_option_differs() {
        let wanted: Vec<_> = COMMANDS.iter().map(command).collect();
        let mut stored = wanted.clone();
        stored[0]["id"] = json!("7");
        stored[0]["options"][0].as_object_mut().unwrap().remove("required");
        stored.reverse();
        assert!(are_registered(&json!(stored), &wanted));
        stored[2]["description"] = json!("another");
        assert!(!are_registered(&json!(stored), &wanted));
        assert!(!are_registered(&json!([]), &wanted) && !are_registered(&json!(null), &wanted));
    }
}
