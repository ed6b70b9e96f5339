//! Creates the Slack channel of a configuration.

use std::num::NonZeroU64;

use teamster_channel_slack::{Channels, ConfigError, Replies, SlackChannel, SlackConfig, Token, TokenKind};

use super::secret::{KeyProblem, SecretSource};
use crate::config::file::{GroupsName, RepliesName, SlackTable};

/// Creates the channel. The service is not called.
///
/// # Errors
/// A value is invalid, or a token cannot be read.
pub(crate) fn slack(table: &SlackTable) -> Result<SlackChannel, KeyProblem> {
    let bot = SecretSource {
        file: ("bot_token_file", table.bot_token_file.as_deref()),
        variable: ("bot_token_env", table.bot_token_env.as_deref()),
        missing: "set it, or bot_token_env: the token of the bot (xoxb-) is in the settings of the Slack app under \"OAuth & \
                  Permissions\" (docs/slack.md)",
    };
    let app = SecretSource {
        file: ("app_token_file", table.app_token_file.as_deref()),
        variable: ("app_token_env", table.app_token_env.as_deref()),
        missing: "set it, or app_token_env: the app-level token (xapp-) is in the settings of the Slack app under \"Basic \
                  Information\", \"App-Level Tokens\" (docs/slack.md)",
    };
    let mut config = SlackConfig::new(token(TokenKind::Bot, bot)?, token(TokenKind::App, app)?);
    if let Some(url) = &table.api_url {
        config.api_url.clone_from(url);
    }
    config.allow_http = table.allow_http.unwrap_or(config.allow_http);
    config.channels = match table.channels {
        None => config.channels,
        Some(GroupsName::Off) => Channels::Off,
        Some(GroupsName::Mentions) => Channels::Mentions,
        Some(GroupsName::All) => Channels::All,
    };
    config.replies = match table.replies {
        None => config.replies,
        Some(RepliesName::Thread) => Replies::Thread,
        Some(RepliesName::Channel) => Replies::Channel,
    };
    config.max_download_bytes = table.max_download_bytes.map_or(config.max_download_bytes, NonZeroU64::get);
    config.max_upload_bytes = table.max_upload_bytes.map_or(config.max_upload_bytes, NonZeroU64::get);
    SlackChannel::new(config).map_err(|error| match error {
        ConfigError::Url(problem) => KeyProblem::new("api_url", problem),
        other => KeyProblem::new("bot_token_file", other.to_string()),
    })
}

fn token(kind: TokenKind, source: SecretSource<'_>) -> Result<Token, KeyProblem> {
    let (key, text) = source.read()?;
    Token::new(kind, &text).map_err(|error| KeyProblem::new(key, error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
        assert!(problem(&url).starts_with("api_url: "), "{}", problem(&url));
    }

    #[test]
    fn swapped_tokens_are_reported_at_their_keys() {
        let directory = tempfile::tempdir().unwrap();
        let swapped = problem(&table(directory.path(), "xapp-1-the-secret", "xoxb-1-the-secret"));
        assert!(swapped.starts_with("bot_token_file: this is the app-level token"), "{swapped}");
        let twice = problem(&table(directory.path(), "xoxb-1-the-secret", "xoxb-1-the-secret"));
        assert!(twice.starts_with("app_token_file: this is the bot token"), "{twice}");
        assert!(![swapped, twice].concat().contains("the-secret"));
    }

    #[test]
    fn a_missing_token_is_reported_with_where_it_comes_from() {
        assert!(problem(&SlackTable::default()).contains("OAuth & Permissions"));
        let directory = tempfile::tempdir().unwrap();
        let only_bot = SlackTable { app_token_file: None, ..table(directory.path(), "xoxb-1", "") };
        assert!(problem(&only_bot).starts_with("app_token_file: set it"), "{}", problem(&only_bot));
    }
}
