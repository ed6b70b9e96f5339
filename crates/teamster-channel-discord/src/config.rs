//! The configuration of the channel.

use std::fmt;
use std::time::Duration;

use reqwest::Url;

/// The largest number of bytes of a token.
const MAX_TOKEN: usize = 256;

/// The REST API of Discord, <https://discord.com/developers/docs/reference>.
pub(crate) const OFFICIAL_API: &str = "https://discord.com/api/v10";

/// The largest size of all files of a received message.
const MAX_DOWNLOAD: u64 = 25 << 20;

/// The largest file that Discord accepts of a bot in a server without boosts.
const MAX_UPLOAD: u64 = 10 << 20;

/// The shortest time between two identifications that Discord permits.
const IDENTIFY_INTERVAL: Duration = Duration::from_secs(5);

/// The configuration of a Discord channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscordConfig {
    /// The bot's token.
    pub token: Token,
    /// The URL of the REST API, with its version.
    pub api_url: String,
    /// The URL of the gateway. `None`: the REST API names it.
    pub gateway_url: Option<String>,
    /// Whether `http` and `ws` are permitted for a host that is not this machine.
    pub allow_http: bool,
    /// What counts as a message to the bot in channels of servers.
    pub servers: Servers,
    /// Whether a message to the bot in a channel of a server opens a thread, which is a conversation of its own.
    pub threads: bool,
    /// Whether the bot asks for the contents of messages that do not mention it. The application needs the intent.
    pub message_content: bool,
    /// The largest size of all files of a received message in bytes.
    pub max_download_bytes: u64,
    /// The largest size of a sent file in bytes.
    pub max_upload_bytes: u64,
    /// The shortest time between two identifications. Discord demands 5 seconds.
    pub identify_interval: Duration,
}

/// What counts as a message to the bot in channels of servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Servers {
    /// Nothing.
    Off,
    /// Mentions of the bot or of its roles, replies to it, and all messages of threads that the bot has opened.
    #[default]
    Mentions,
    /// Every message.
    All,
}

/// The token of a bot. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// What is wrong in a configuration. The texts contain no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The token has another form than those of the developer portal.
    #[error(
        "the token is invalid: the page Bot of your application in https://discord.com/developers/applications gives one of \
         three parts with dots between them"
    )]
    Token,
    /// The URL of the REST API is invalid.
    #[error("the URL of the REST API {0}")]
    ApiUrl(String),
    /// The URL of the gateway is invalid.
    #[error("the URL of the gateway {0}")]
    GatewayUrl(String),
    /// Threads need the contents of messages.
    #[error("threads = true needs message_content = true: messages of a thread do not mention the bot")]
    ThreadsWithoutContent,
    /// The HTTP client cannot be created.
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
}

impl DiscordConfig {
    /// Describes the channel of a bot with the default limits.
    pub fn new(token: Token) -> Self {
        Self {
            token,
            api_url: OFFICIAL_API.to_owned(),
            gateway_url: None,
            allow_http: false,
            servers: Servers::default(),
            threads: false,
            message_content: true,
            max_download_bytes: MAX_DOWNLOAD,
            max_upload_bytes: MAX_UPLOAD,
            identify_interval: IDENTIFY_INTERVAL,
        }
    }

    /// Returns whether the bot asks for the contents of messages that do not mention it. Direct messages always have them.
    pub(crate) fn wants_content(&self) -> bool {
        self.message_content && self.servers != Servers::Off
    }

    /// Parses and checks the URL of the REST API.
    pub(crate) fn parse_api_url(&self) -> Result<Url, ConfigError> {
        self.parse(&self.api_url, ["https", "http"]).map_err(ConfigError::ApiUrl)
    }

    /// Checks a URL of the gateway: the configured one, or one of the service. The token is sent to it.
    pub(crate) fn check_gateway_url(&self, url: &str) -> Result<(), ConfigError> {
        self.parse(url, ["wss", "ws"]).map(|_| ()).map_err(ConfigError::GatewayUrl)
    }

    fn parse(&self, text: &str, [secure, plain]: [&str; 2]) -> Result<Url, String> {
        let url = Url::parse(text).map_err(|error| format!("is invalid: {error}"))?;
        let has_more = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
        if has_more || url.fragment().is_some() || url.cannot_be_a_base() {
            return Err("must have a scheme, a host and perhaps a path only".to_owned());
        }
        match url.scheme() {
            scheme if scheme == secure => Ok(url),
            scheme if scheme == plain && (self.allow_http || is_local(&url)) => Ok(url),
            scheme if scheme == plain => {
                Err(format!("must start with {secure}, because it gets the token: or set allow_http = true"))
            }
            _ => Err(format!("must start with {secure}")),
        }
    }
}

/// Returns whether a URL names this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Token {
    /// Checks the form of a token: three parts of letters, digits, `-` or `_`. A leading `Bot ` is removed.
    ///
    /// # Errors
    /// The text has another form.
    pub fn new(text: &str) -> Result<Self, ConfigError> {
        let text = text.trim();
        let text = text.strip_prefix("Bot ").unwrap_or(text).trim();
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let is_valid = text.len() <= MAX_TOKEN && text.split('.').count() == 3 && text.split('.').all(is_part);
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

    fn config() -> DiscordConfig {
        DiscordConfig::new(Token::new("a.b.c").unwrap())
    }

    #[test]
    fn a_token_has_three_parts_and_is_never_printed() {
        let token = Token::new(" Bot MTIz.Gabc-1.the_secret\n").unwrap();
        assert_eq!(token.expose(), "MTIz.Gabc-1.the_secret");
        assert!(!format!("{:?}", DiscordConfig::new(token)).contains("the_secret"));
        for text in ["", "a", "a.b", "a.b.", "a.b.c.d", "a.b.c d", "a/../b.c.d", &format!("a.b.{}", "c".repeat(300))] {
            assert_eq!(Token::new(text), Err(ConfigError::Token), "{text}");
        }
    }

    #[test]
    fn the_token_is_sent_encrypted_or_within_this_machine_only() {
        let with_url = |url: &str| DiscordConfig { api_url: url.to_owned(), ..config() }.parse_api_url();
        assert!(with_url(OFFICIAL_API).is_ok() && with_url("http://127.0.0.1:8081/api/v10").is_ok());
        for url in
            ["http://10.0.0.1", "ftp://example.com", "https://user:pass@example.com", "https://e.com/?x=1", "no url"]
        {
            assert!(with_url(url).is_err(), "{url}");
        }
        let gateway = |url: &str| config().check_gateway_url(url);
        assert!(gateway("wss://gateway.discord.gg").is_ok() && gateway("ws://localhost:1/x").is_ok());
        for url in ["ws://gateway.discord.gg", "https://gateway.discord.gg", "", "wss://"] {
            assert!(gateway(url).is_err(), "{url}");
        }
        let open = DiscordConfig { allow_http: true, ..config() };
        assert!(open.check_gateway_url("ws://discord-proxy:80").is_ok());
    }
}
