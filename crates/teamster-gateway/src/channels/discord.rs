//! Creates the Discord channel of a configuration.

use std::num::NonZeroU64;

use teamster_channel_discord::{ConfigError, DiscordChannel, DiscordConfig, Servers, Token};

use super::secret::{KeyProblem, SecretSource};
use crate::config::file::{DiscordTable, GroupsName};

/// Creates the channel. The service is not called.
///
/// # Errors
/// A value is invalid, or the token cannot be read.
pub(crate) fn discord(table: &DiscordTable) -> Result<DiscordChannel, KeyProblem> {
    let source = SecretSource {
        file: ("token_file", table.token_file.as_deref()),
        variable: ("token_env", table.token_env.as_deref()),
        missing: "set it, or token_env, or the variable DISCORD_TOKEN: Discord's developer portal gives the token of a bot \
                  (docs/discord.md)",
    };
    let (key, text) = source.read()?;
    let token = Token::new(&text).map_err(|error| KeyProblem::new(key, error.to_string()))?;
    let mut config = DiscordConfig::new(token);
    if let Some(url) = &table.api_url {
        config.api_url.clone_from(url);
    }
    config.gateway_url.clone_from(&table.gateway_url);
    config.allow_http = table.allow_http.unwrap_or(config.allow_http);
    config.servers = match table.servers {
        None => config.servers,
        Some(GroupsName::Off) => Servers::Off,
        Some(GroupsName::Mentions) => Servers::Mentions,
        Some(GroupsName::All) => Servers::All,
    };
    config.threads = table.threads.unwrap_or(config.threads);
    config.message_content = table.message_content.unwrap_or(config.message_content);
    config.max_download_bytes = table.max_download_bytes.map_or(config.max_download_bytes, NonZeroU64::get);
    config.max_upload_bytes = table.max_upload_bytes.map_or(config.max_upload_bytes, NonZeroU64::get);
    DiscordChannel::new(config).map_err(|error| match error {
        ConfigError::ApiUrl(problem) => KeyProblem::new("api_url", problem),
        ConfigError::GatewayUrl(problem) => KeyProblem::new("gateway_url", problem),
        ConfigError::ThreadsWithoutContent => KeyProblem::new("threads", error.to_string()),
        other => KeyProblem::new(key, other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(table: &DiscordTable) -> String {
        discord(table).unwrap_err().to_string()
    }

    #[test]
    fn a_token_is_read_from_its_file_and_is_in_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "MTIz.Gabc.the-secret\n").unwrap();
        let table = DiscordTable { token_file: Some(file.clone()), ..DiscordTable::default() };
        assert!(!format!("{:?}", discord(&table).unwrap()).contains("the-secret"));
        std::fs::write(&file, "the-secret of something else").unwrap();
        let text = problem(&table);
        assert!(text.starts_with("token_file: ") && !text.contains("the-secret"), "{text}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_key() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "a.b.c").unwrap();
        let table = DiscordTable { token_file: Some(file), ..DiscordTable::default() };
        let wrong = "http://example.org".to_owned();
        for (table, start) in [
            (DiscordTable::default(), "token_file: set it"),
            (DiscordTable { api_url: Some(wrong.clone()), ..table.clone() }, "api_url: "),
            (DiscordTable { gateway_url: Some(wrong), ..table.clone() }, "gateway_url: "),
            (DiscordTable { threads: Some(true), message_content: Some(false), ..table }, "threads: "),
        ] {
            assert!(problem(&table).starts_with(start), "{}", problem(&table));
        }
    }
}
