//! The configuration of the channel.

use std::fmt;

use reqwest::Url;

/// The largest number of bytes of a token.
const MAX_TOKEN: usize = 256;

/// The Bot API of Telegram.
pub(crate) const OFFICIAL_API: &str = "https://api.telegram.org";

/// The largest file that the Bot API lets a bot download.
const MAX_DOWNLOAD: u64 = 20 << 20;

/// The largest file that the Bot API accepts of a bot.
const MAX_UPLOAD: u64 = 50 << 20;

/// The configuration of a Telegram channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TelegramConfig {
    /// The bot's token.
    pub token: Token,
    /// The URL of the Bot API, without the token.
    pub api_url: String,
    /// Whether `http` is permitted for a host that is not this machine.
    pub allow_http: bool,
    /// What counts as a message to the bot in groups.
    pub groups: Groups,
    /// The largest size of all files of a received message in bytes.
    pub max_download_bytes: u64,
    /// The largest size of a sent file in bytes.
    pub max_upload_bytes: u64,
}

/// What counts as a message to the bot in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Groups {
    /// Nothing.
    Off,
    /// Mentions of the bot, replies to it and its commands.
    #[default]
    Mentions,
    /// Every message. The bot must have no privacy mode.
    All,
}

/// The token of a bot. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// What is wrong in a configuration. The texts contain no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The token has another form than those of `BotFather`.
    #[error("the token is invalid: `BotFather` gives one of the form 123456:ABC-DEF")]
    Token,
    /// The URL of the Bot API is invalid.
    #[error("the URL of the Bot API {0}")]
    Url(String),
    /// The HTTP client cannot be created.
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
}

impl TelegramConfig {
    /// Describes the channel of a bot with the default limits.
    pub fn new(token: Token) -> Self {
        Self {
            token,
            api_url: OFFICIAL_API.to_owned(),
            allow_http: false,
            groups: Groups::default(),
            max_download_bytes: MAX_DOWNLOAD,
            max_upload_bytes: MAX_UPLOAD,
        }
    }

    /// Parses and checks the URL of the Bot API.
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
            "http" => Err(wrong("must start with https, because it contains the token: or set allow_http = true")),
            _ => Err(wrong("must start with https")),
        }
    }
}

/// Returns whether a URL names this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Token {
    /// Checks the form of a token: a number, a colon, and letters, digits, `-` or `_`.
    ///
    /// # Errors
    /// The text has another form.
    pub fn new(text: &str) -> Result<Self, ConfigError> {
        let text = text.trim();
        let is_valid = text.len() <= MAX_TOKEN
            && text.split_once(':').is_some_and(|(id, secret)| {
                let is_secret = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                id.parse::<u64>().is_ok() && !secret.is_empty() && secret.bytes().all(is_secret)
            });
        if is_valid { Ok(Self(text.to_owned())) } else { Err(ConfigError::Token) }
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

    fn with_url(url: &str) -> Result<Url, ConfigError> {
        let token = Token::new("123:abc").unwrap();
        TelegramConfig { api_url: url.to_owned(), ..TelegramConfig::new(token) }.parse_url()
    }

    #[test]
    fn a_token_has_the_form_of_botfather_and_is_never_printed() {
        let token = Token::new(" 123456:ABC-DEF1234ghIkl_zyx57W2v1u123ew11\n").unwrap();
        assert!(!format!("{:?}", TelegramConfig::new(token)).contains("ABC-DEF"));
        for text in ["", "123456", "123456:", "abc:def", "123:a/../b", "123:a?b", "12 3:abc", &"1".repeat(300)] {
            assert_eq!(Token::new(text), Err(ConfigError::Token), "{text}");
        }
    }

    #[test]
    fn the_token_is_sent_by_https_or_within_this_machine_only() {
        assert!(with_url(OFFICIAL_API).is_ok());
        assert!(with_url("http://127.0.0.1:8081").is_ok() && with_url("http://localhost:8081/x").is_ok());
        for url in [
            "http://telegram-bot-api:8081",
            "http://10.0.0.1",
            "ftp://example.com",
            "https://user:pass@example.com",
            "https://example.com/?x=1",
            "mailto:x@example.com",
            "not a url",
        ] {
            assert!(with_url(url).is_err(), "{url}");
        }
        let token = Token::new("123:abc").unwrap();
        let mut config = TelegramConfig { allow_http: true, ..TelegramConfig::new(token) };
        config.api_url = "http://telegram-bot-api:8081".to_owned();
        assert!(config.parse_url().is_ok());
    }
}
