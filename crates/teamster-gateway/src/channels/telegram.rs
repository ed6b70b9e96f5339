//! Creates the Telegram channel of a configuration.

use std::num::NonZeroU64;

use teamster_channel_telegram::{ConfigError, Groups, TelegramChannel, TelegramConfig, Token};

use super::secret::{KeyProblem, SecretSource};
use crate::config::file::{GroupsName, TelegramTable};

/// Creates the channel. The service is not called.
///
/// # Errors
/// A value is invalid, or the token cannot be read.
pub(crate) fn telegram(table: &TelegramTable) -> Result<TelegramChannel, KeyProblem> {
    let source = SecretSource {
        file: ("token_file", table.token_file.as_deref()),
        variable: ("token_env", table.token_env.as_deref()),
        missing: "set it, or token_env: @BotFather gives the token of a bot (docs/telegram.md)",
    };
    let (key, text) = source.read()?;
    let token = Token::new(&text).map_err(|error| KeyProblem::new(key, error.to_string()))?;
    let mut config = TelegramConfig::new(token);
    if let Some(url) = &table.api_url {
        config.api_url.clone_from(url);
    }
    config.allow_http = table.allow_http.unwrap_or(config.allow_http);
    config.groups = match table.groups {
        None => config.groups,
        Some(GroupsName::Off) => Groups::Off,
        Some(GroupsName::Mentions) => Groups::Mentions,
        Some(GroupsName::All) => Groups::All,
    };
    config.max_download_bytes = table.max_download_bytes.map_or(config.max_download_bytes, NonZeroU64::get);
    config.max_upload_bytes = table.max_upload_bytes.map_or(config.max_upload_bytes, NonZeroU64::get);
    TelegramChannel::new(config).map_err(|error| match error {
        ConfigError::Url(problem) => KeyProblem::new("api_url", problem),
        other => KeyProblem::new(key, other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(table: &TelegramTable) -> String {
        telegram(table).unwrap_err().to_string()
    }

    #[test]
    fn a_token_is_read_from_its_file_and_is_in_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "123:the-secret\n").unwrap();
        let table = TelegramTable { token_file: Some(file.clone()), ..TelegramTable::default() };
        assert!(!format!("{:?}", telegram(&table).unwrap()).contains("the-secret"));
        let url = TelegramTable { api_url: Some("http://example.org".to_owned()), ..table.clone() };
        assert!(problem(&url).starts_with("api_url: "), "{}", problem(&url));
        std::fs::write(&file, "the-secret of something else").unwrap();
        let text = problem(&table);
        assert!(text.starts_with("token_file: ") && !text.contains("the-secret"), "{text}");
    }

    #[test]
    fn a_missing_token_is_reported_with_where_it_comes_from() {
        assert!(problem(&TelegramTable::default()).contains("@BotFather"));
    }
}
