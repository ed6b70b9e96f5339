//! Creates the Slack channel of a configuration.

use std::io::Read as _;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use teamster_channel_slack::{Channels, ConfigError, Replies, SlackChannel, SlackConfig, Token, TokenKind};

use crate::config::file::{ChannelsName, RepliesName, SlackTable};

/// The largest number of bytes of a token's file.
const MAX_TOKEN_FILE: u64 = 4_096;

/// A problem of a key of the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("slack.{key}: {problem}")]
pub(crate) struct SlackProblem {
    /// The key in the table.
    pub(crate) key: &'static str,
    /// What is wrong. It contains no secret.
    pub(crate) problem: String,
}

fn wrong(key: &'static str, problem: impl Into<String>) -> SlackProblem {
    SlackProblem { key, problem: problem.into() }
}

/// The keys of a token, and where the token is.
struct Source<'a> {
    kind: TokenKind,
    file_key: &'static str,
    file: Option<&'a PathBuf>,
    env_key: &'static str,
    variable: Option<&'a String>,
    place: &'static str,
}

/// Creates the channel. The service is not called.
///
/// # Errors
/// A value is invalid, or a token cannot be read.
pub(crate) fn slack(table: &SlackTable) -> Result<SlackChannel, SlackProblem> {
    let bot = token(&Source {
        kind: TokenKind::Bot,
        file_key: "bot_token_file",
        file: table.bot_token_file.as_ref(),
        env_key: "bot_token_env",
        variable: table.bot_token_env.as_ref(),
        place: "\"OAuth & Permissions\" (xoxb-)",
    })?;
    let app = token(&Source {
        kind: TokenKind::App,
        file_key: "app_token_file",
        file: table.app_token_file.as_ref(),
        env_key: "app_token_env",
        variable: table.app_token_env.as_ref(),
        place: "\"Basic Information\", \"App-Level Tokens\" (xapp-)",
    })?;
    let mut config = SlackConfig::new(bot, app);
    if let Some(url) = &table.api_url {
        config.api_url.clone_from(url);
    }
    config.allow_http = table.allow_http.unwrap_or(config.allow_http);
    config.channels = match table.channels {
        None => config.channels,
        Some(ChannelsName::Off) => Channels::Off,
        Some(ChannelsName::Mentions) => Channels::Mentions,
        Some(ChannelsName::All) => Channels::All,
    };
    config.replies = match table.replies {
        None => config.replies,
        Some(RepliesName::Thread) => Replies::Thread,
        Some(RepliesName::Channel) => Replies::Channel,
    };
    config.max_download_bytes = table.max_download_bytes.map_or(config.max_download_bytes, NonZeroU64::get);
    config.max_upload_bytes = table.max_upload_bytes.map_or(config.max_upload_bytes, NonZeroU64::get);
    SlackChannel::new(config).map_err(|error| match error {
        ConfigError::Url(problem) => wrong("api_url", problem),
        other => wrong("bot_token_file", other.to_string()),
    })
}

fn token(source: &Source<'_>) -> Result<Token, SlackProblem> {
    let Source { kind, file_key, file, env_key, variable, place } = *source;
    let (key, text) = match (file, variable) {
        (Some(file), None) => (file_key, read(file_key, file)?),
        (None, Some(name)) => {
            let text = std::env::var(name);
            (env_key, text.map_err(|_| wrong(env_key, format!("the variable {name} is not set")))?)
        }
        (None, None) => {
            let problem = format!(
                "set it, or {env_key}: the token is in the settings of the Slack app under {place} (docs/slack.md)"
            );
            return Err(wrong(file_key, problem));
        }
        (Some(_), Some(_)) => {
            return Err(wrong(env_key, format!("either {file_key} or {env_key}: remove one of them")));
        }
    };
    Token::new(kind, &text).map_err(|error| wrong(key, error.to_string()))
}

fn read(key: &'static str, file: &Path) -> Result<String, SlackProblem> {
    let problem = |error: std::io::Error| wrong(key, format!("cannot read {}: {error}", file.display()));
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(problem)?;
    opened.take(MAX_TOKEN_FILE).read_to_string(&mut text).map_err(problem)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(table: &SlackTable) -> String {
        slack(table).unwrap_err().to_string()
    }

    /// Returns a table with these tokens in files.
    fn table(directory: &Path, bot: &str, app: &str) -> SlackTable {
        for (name, text) in [("bot", bot), ("app", app)] {
            std::fs::write(directory.join(name), format!("{text}\n")).unwrap();
        }
        let file = |name: &str| Some(directory.join(name));
        SlackTable { bot_token_file: file("bot"), app_token_file: file("app"), ..SlackTable::default() }
    }

    #[test]
    fn tokens_are_read_from_their_files_and_are_in_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let valid = table(directory.path(), "xoxb-1-the-secret", "xapp-1-the-secret");
        assert!(!format!("{:?}", slack(&valid).unwrap()).contains("the-secret"));
        let url = SlackTable { api_url: Some("http://example.org".to_owned()), ..valid };
        assert!(problem(&url).starts_with("slack.api_url: "), "{}", problem(&url));
    }

    #[test]
    fn swapped_tokens_are_reported_at_their_keys() {
        let directory = tempfile::tempdir().unwrap();
        let swapped = problem(&table(directory.path(), "xapp-1-the-secret", "xoxb-1-the-secret"));
        assert!(swapped.starts_with("slack.bot_token_file: this is the app-level token"), "{swapped}");
        let twice = problem(&table(directory.path(), "xoxb-1-the-secret", "xoxb-1-the-secret"));
        assert!(twice.starts_with("slack.app_token_file: this is the bot token"), "{twice}");
        assert!(![swapped, twice].concat().contains("the-secret"));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(problem(&SlackTable::default()).contains("OAuth & Permissions"));
        let unset = SlackTable { bot_token_env: Some("TEAMSTER_NO_SUCH_VARIABLE".to_owned()), ..SlackTable::default() };
        assert!(problem(&unset).contains("TEAMSTER_NO_SUCH_VARIABLE"));
        let both = SlackTable { bot_token_file: Some("/x".into()), ..unset };
        assert!(problem(&both).contains("either bot_token_file or bot_token_env"));
        let directory = tempfile::tempdir().unwrap();
        let only_bot = SlackTable { app_token_file: None, ..table(directory.path(), "xoxb-1", "") };
        assert!(problem(&only_bot).starts_with("slack.app_token_file: set it"), "{}", problem(&only_bot));
    }
}
