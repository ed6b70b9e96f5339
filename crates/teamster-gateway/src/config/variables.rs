//! Environment variables with secrets of the gateway. Agents do not inherit them.

use teamster::Registry;
use teamster::backend::variables::{DISCORD_TOKEN, GATEWAY_TOKEN};

use super::Config;

/// Variables of the gateway itself. Those of OpenTelemetry may have the login of a collector.
const OWN: [&str; 6] = [
    GATEWAY_TOKEN,
    DISCORD_TOKEN,
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
];

/// Variables that programs need, and that a hook may list without making them secret.
const COMMON: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TERM",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

impl Config {
    /// Returns the variables with secrets of the gateway, its channels and its hooks. The environment of the runtime that starts
    /// the agents must not have them.
    ///
    /// A variable of a hook that is a key of an agent is not among them: the agent needs it as well.
    pub fn secret_variables(&self, registry: &Registry) -> Vec<String> {
        let is_agents_key = |name: &str| {
            let mut agents = registry.names().filter_map(|name| registry.get(name).ok());
            agents.any(|agent| agent.capabilities().is_some_and(|capabilities| capabilities.knows_key(name)))
        };
        let is_common = |name: &str| COMMON.iter().any(|common| common.eq_ignore_ascii_case(name));
        let mut names: Vec<_> = OWN.map(str::to_owned).to_vec();
        names.extend(self.hooks.iter().filter_map(|hook| hook.secret_env.clone()));
        names.extend(self.webhooks.iter().flat_map(|webhook| webhook.secret_envs.iter().cloned()));
        names.extend(self.discord.iter().filter_map(|discord| discord.token_env.clone()));
        let slack = self.slack.iter().flat_map(|slack| [&slack.bot_token_env, &slack.app_token_env]);
        names.extend(slack.flatten().cloned());
        names.extend(self.telegram.iter().filter_map(|telegram| telegram.token_env.clone()));
        let passed = self.hooks.iter().flat_map(|hook| &hook.env);
        names.extend(passed.filter(|name| !is_common(name) && !is_agents_key(name)).cloned());
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::WebhookConfig;
    use crate::config::file::{DiscordTable, SlackTable, TelegramTable};
    use crate::hooks::HookConfig;

    #[test]
    fn every_variable_with_a_secret_of_the_gateway_is_listed() {
        let hook = HookConfig {
            env: ["CHAT_PASSWORD", "PATH", "http_proxy", "ANTHROPIC_API_KEY"].map(str::to_owned).to_vec(),
            ..HookConfig::default()
        };
        let signed = HookConfig { secret_env: Some("SIGNING".to_owned()), ..HookConfig::default() };
        let mut webhook = WebhookConfig::new("w", "https://example.org", "s");
        webhook.secret_envs = vec!["CHANNEL".to_owned()];
        let discord = DiscordTable { token_env: Some("GUILD_BOT".to_owned()), ..DiscordTable::default() };
        let telegram = TelegramTable { token_env: Some("BOT".to_owned()), ..TelegramTable::default() };
        let slack = SlackTable {
            bot_token_env: Some("SLACK_BOT".to_owned()),
            app_token_env: Some("SLACK_APP".to_owned()),
            ..SlackTable::default()
        };
        let config = Config {
            slack: Some(slack),
            hooks: vec![hook, signed],
            webhooks: vec![webhook],
            discord: Some(discord),
            telegram: Some(telegram),
            ..Config::default()
        };
        let names = config.secret_variables(&Registry::default());
        for name in [
            "TEAMSTER_TOKEN",
            "DISCORD_TOKEN",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "CHAT_PASSWORD",
            "SIGNING",
            "CHANNEL",
            "GUILD_BOT",
            "BOT",
            "SLACK_BOT",
            "SLACK_APP",
        ] {
            assert!(names.iter().any(|found| found == name), "{name}");
        }
        for name in ["PATH", "http_proxy", "ANTHROPIC_API_KEY"] {
            assert!(!names.iter().any(|found| found == name), "{name}");
        }
    }
}
