//! Creates the Telegram channel of a configuration.

use std::io::Read as _;
use std::num::NonZeroU64;
use std::path::Path;

use teamster_channel_telegram::{ConfigError, Groups, TelegramChannel, TelegramConfig, Token};

use crate::config::file::{GroupsName, TelegramTable};

/// The largest number of bytes of a token's file.
const MAX_TOKEN_FILE: u64 = 4_096;

/// A problem of a key of the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("telegram.{key}: {problem}")]
pub(crate) struct TelegramProblem {
    /// The key in the table.
    pub(crate) key: &'static str,
    /// What is wrong. It contains no secret.
    pub(crate) problem: String,
}

fn wrong(key: &'static str, problem: impl Into<String>) -> TelegramProblem {
    TelegramProblem { key, problem: problem.into() }
}

/// Creates the channel. The service is not called.
///
/// # Errors
/// A value is invalid, or the token cannot be read.
pub(crate) fn telegram(table: &TelegramTable) -> Result<TelegramChannel, TelegramProblem> {
    let (key, text) = match (&table.token_file, &table.token_env) {
        (Some(file), None) => ("token_file", read(file)?),
        (None, Some(name)) => {
            let text = std::env::var(name);
            ("token_env", text.map_err(|_| wrong("token_env", format!("the variable {name} is not set")))?)
        }
        (None, None) => {
            let problem = "set it, or token_env: @BotFather gives the token of a bot (docs/telegram.md)";
            return Err(wrong("token_file", problem));
        }
        (Some(_), Some(_)) => return Err(wrong("token_env", "either token_file or token_env: remove one of them")),
    };
    let token = Token::new(&text).map_err(|error| wrong(key, error.to_string()))?;
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
        ConfigError::Url(problem) => wrong("api_url", problem),
        other => wrong(key, other.to_string()),
    })
}

fn read(file: &Path) -> Result<String, TelegramProblem> {
    let problem = |error: std::io::Error| wrong("token_file", format!("cannot read {}: {error}", file.display()));
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(problem)?;
    opened.take(MAX_TOKEN_FILE).read_to_string(&mut text).map_err(problem)?;
    Ok(text)
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
        assert!(problem(&url).starts_with("telegram.api_url: "), "{}", problem(&url));
        std::fs::write(&file, "the-secret of something else").unwrap();
        let text = problem(&table);
        assert!(text.starts_with("telegram.token_file: ") && !text.contains("the-secret"), "{text}");
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(problem(&TelegramTable::default()).contains("@BotFather"));
        let unset =
            TelegramTable { token_env: Some("TEAMSTER_NO_SUCH_VARIABLE".to_owned()), ..TelegramTable::default() };
        assert!(problem(&unset).contains("TEAMSTER_NO_SUCH_VARIABLE"));
        let both = TelegramTable { token_file: Some("/x".into()), ..unset };
        assert!(problem(&both).contains("either token_file or token_env"));
    }
}
