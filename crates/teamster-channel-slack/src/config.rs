//! The configuration of the channel.

use std::fmt;

use reqwest::Url;

/// The largest number of bytes of a token.
const MAX_TOKEN: usize = 512;

/// The Web API of Slack.
pub(crate) const OFFICIAL_API: &str = "https://slack.com/api";

/// The largest files of a message that are downloaded. Slack has files of up to 1 GB.
const MAX_DOWNLOAD: u64 = 20 << 20;

/// The largest file that is sent.
const MAX_UPLOAD: u64 = 50 << 20;

/// The configuration of a Slack channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlackConfig {
    /// The token of the bot, which starts with `xoxb-`.
    pub bot_token: Token,
    /// The app-level token with `connections:write`, which starts with `xapp-`.
    pub app_token: Token,
    /// The URL of the Web API.
    pub api_url: String,
    /// Whether `http` is permitted for a host that is not this machine.
    pub allow_http: bool,
    /// What counts as a message to the bot in channels.
    pub channels: Channels,
    /// Where a message of a channel that is in no thread is answered.
    pub replies: Replies,
    /// The largest size of all files of a received message in bytes.
    pub max_download_bytes: u64,
    /// The largest size of a sent file in bytes.
    pub max_upload_bytes: u64,
}

/// What counts as a message to the bot in channels and in direct messages of several people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channels {
    /// Nothing.
    Off,
    /// Mentions of the bot, and messages in threads in which it has answered, unless they mention only another person.
    #[default]
    Mentions,
    /// Every message.
    All,
}

/// Where a message of a channel that is in no thread is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replies {
    /// In a thread of the message. Each thread is a conversation.
    #[default]
    Thread,
    /// In the channel, which is one conversation.
    Channel,
}

/// Which token it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// That of the bot.
    Bot,
    /// That of the app.
    App,
}

/// A token. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// What is wrong in a configuration. The texts contain no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A token has another form than those of Slack.
    #[error("{problem}")]
    Token {
        /// Which one.
        kind: TokenKind,
        /// What is wrong, and where to find the right one.
        problem: &'static str,
    },
    /// The URL of the Web API is invalid.
    #[error("the URL of the Web API {0}")]
    Url(String),
    /// The HTTP client cannot be created.
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
}

impl SlackConfig {
    /// Describes the channel of an app with the default limits.
    pub fn new(bot_token: Token, app_token: Token) -> Self {
        Self {
            bot_token,
            app_token,
            api_url: OFFICIAL_API.to_owned(),
            allow_http: false,
            channels: Channels::default(),
            replies: Replies::default(),
            max_download_bytes: MAX_DOWNLOAD,
            max_upload_bytes: MAX_UPLOAD,
        }
    }

    /// Parses and checks the URL of the Web API.
    pub(crate) fn parse_url(&self) -> Result<Url, ConfigError> {
        let wrong = |problem: &str| ConfigError::Url(problem.to_owned());
        let url = Url::parse(&self.api_url).map_err(|error| ConfigError::Url(format!("is invalid: {error}")))?;
        let has_more = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
        if has_more || url.fragment().is_some() || url.cannot_be_a_base() {
            return Err(wrong("must have a scheme, a host and perhaps a path only"));
        }
        match url.scheme() {
            "https" => Ok(url),
            "http" if self.allow_http || is_local(&url) => Ok(url),
            "http" => Err(wrong("must start with https, because calls contain the tokens: or set allow_http = true")),
            _ => Err(wrong("must start with https")),
        }
    }
}

/// Returns whether a URL names this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl TokenKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Bot => "xoxb-",
            Self::App => "xapp-",
        }
    }

    /// Returns what is wrong with a text that is no token of this kind.
    fn problem(self, text: &str) -> &'static str {
        match self {
            Self::Bot if text.starts_with("xapp-") => {
                "this is the app-level token (xapp-): the bot token starts with xoxb- and is in the settings of the app under \
                 \"OAuth & Permissions\", after \"Install to Workspace\""
            }
            Self::Bot if text.starts_with("xoxp-") => {
                "this is a token of a person (xoxp-): the bot token starts with xoxb- and is in the settings of the app under \
                 \"OAuth & Permissions\", as \"Bot User OAuth Token\""
            }
            Self::Bot => {
                "the bot token is invalid: it starts with xoxb- and is in the settings of the app under \"OAuth & \
                 Permissions\", as \"Bot User OAuth Token\""
            }
            Self::App if text.starts_with("xoxb-") => {
                "this is the bot token (xoxb-): the app-level token starts with xapp- and is created in the settings of the app \
                 under \"Basic Information\", \"App-Level Tokens\", with the scope connections:write"
            }
            Self::App => {
                "the app-level token is invalid: it starts with xapp- and is created in the settings of the app under \"Basic \
                 Information\", \"App-Level Tokens\", with the scope connections:write"
            }
        }
    }
}

impl Token {
    /// Checks the form of a token: its prefix, then letters, digits, `-`, `_` and `.`.
    ///
    /// # Errors
    /// The text has another form.
    pub fn new(kind: TokenKind, text: &str) -> Result<Self, ConfigError> {
        let text = text.trim();
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let rest = text.strip_prefix(kind.prefix()).unwrap_or_default();
        if text.len() <= MAX_TOKEN && !rest.is_empty() && rest.bytes().all(is_part) {
            return Ok(Self(text.to_owned()));
        }
        Err(ConfigError::Token { kind, problem: kind.problem(text) })
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

/// Shows no secret.
impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> SlackConfig {
        SlackConfig::new(
            Token::new(TokenKind::Bot, "xoxb-1-secret").unwrap(),
            Token::new(TokenKind::App, "xapp-1-A0-secret").unwrap(),
        )
    }

    #[test]
    fn a_token_has_the_form_of_slack_and_is_never_printed() {
        assert!(!format!("{:?}", config()).contains("secret"));
        assert_eq!(Token::new(TokenKind::Bot, " xoxb-1-a\n").unwrap().expose(), "xoxb-1-a");
        for text in ["", "xoxb-", "xoxb-a b", "xoxb-a/b", "1234", &format!("xoxb-{}", "1".repeat(600))] {
            assert!(Token::new(TokenKind::Bot, text).is_err(), "{text}");
        }
    }

    #[test]
    fn swapped_tokens_are_recognized_and_the_error_names_the_place_of_the_right_one() {
        let problem = |kind, text| Token::new(kind, text).unwrap_err().to_string();
        let bot = problem(TokenKind::Bot, "xapp-1-A0-secret");
        assert!(bot.contains("app-level token") && bot.contains("OAuth & Permissions"), "{bot}");
        let app = problem(TokenKind::App, "xoxb-1-secret");
        assert!(app.contains("bot token") && app.contains("connections:write"), "{app}");
        assert!(problem(TokenKind::Bot, "xoxp-1-secret").contains("token of a person"));
        assert!(![bot, app].concat().contains("secret"));
    }

    #[test]
    fn tokens_are_sent_by_https_or_within_this_machine_only() {
        let with_url = |url: &str| SlackConfig { api_url: url.to_owned(), ..config() }.parse_url();
        assert!(with_url(OFFICIAL_API).is_ok());
        assert!(with_url("http://127.0.0.1:8081/api").is_ok() && with_url("http://localhost:8081").is_ok());
        for url in
            ["http://slack:80/api", "ftp://e.org", "https://u:p@e.org", "https://e.org/?x=1", "mailto:x@e.org", "x"]
        {
            assert!(with_url(url).is_err(), "{url}");
        }
        let allowed = SlackConfig { api_url: "http://proxy/api".to_owned(), allow_http: true, ..config() };
        assert!(allowed.parse_url().is_ok());
    }
}
