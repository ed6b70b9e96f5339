//! The configuration of a webhook channel.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use teamster_channel::signature::WebhookSecret;

use crate::address::{AddressPolicy, Forbidden};

/// The largest number of bytes of a secret's file.
const MAX_SECRET_FILE: u64 = 4096;

/// A webhook channel
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// The name, of letters, digits, - and _; the channel is webhook-NAME, and messages go to /v1/webhooks/NAME
    pub name: String,
    /// The URL to which answers go
    pub url: String,
    /// Secrets that sign in both directions, as `whsec_BASE64` or a text; several during a rotation
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretText>,
    /// Files with one secret each
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_files: Vec<PathBuf>,
    /// Environment variables with one secret each
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_envs: Vec<String>,
    /// Permit a URL whose address is private
    #[serde(default)]
    pub allow_private: bool,
    /// Permit a URL whose address is loopback
    #[serde(default)]
    pub allow_loopback: bool,
    /// Permit http instead of https for an address that is not loopback
    #[serde(default)]
    pub allow_http: bool,
    /// Give up after this number of attempts
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The time limit of one request
    #[serde(default = "default_timeout", deserialize_with = "duration", serialize_with = "duration_text")]
    #[schemars(with = "String")]
    pub timeout: Duration,
    /// The shortest time between two requests
    #[serde(default, deserialize_with = "duration", serialize_with = "duration_text")]
    #[schemars(with = "String")]
    pub interval: Duration,
    /// The maximum size of a received body in bytes
    #[serde(default = "default_max_body")]
    pub max_body_bytes: usize,
    /// The maximum size of a sent file in bytes
    #[serde(default = "default_max_file")]
    pub max_file_bytes: u64,
}

/// A secret in a configuration. It is never printed.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretText(String);

/// What is wrong in a configuration. The texts contain no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The name is invalid.
    #[error("the webhook name {0:?} is invalid: use 1 to 40 lower-case letters, digits, - and _")]
    Name(String),
    /// Two webhooks have this name.
    #[error("two webhooks have the name {0}: each needs its own")]
    Repeated(String),
    /// The URL is invalid.
    #[error("the URL of the webhook {name} {problem}")]
    Url {
        /// The webhook.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// There is no secret, or it is invalid.
    #[error("the webhook {name} {problem}")]
    Secret {
        /// The webhook.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl WebhookConfig {
    /// Describes a webhook with the default limits.
    pub fn new(name: impl Into<String>, url: impl Into<String>, secret: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            secrets: vec![SecretText(secret.into())],
            secret_files: Vec::new(),
            secret_envs: Vec::new(),
            allow_private: false,
            allow_loopback: false,
            allow_http: false,
            max_attempts: None,
            timeout: default_timeout(),
            interval: Duration::ZERO,
            max_body_bytes: default_max_body(),
            max_file_bytes: default_max_file(),
        }
    }

    /// Checks the name.
    pub(crate) fn check_name(&self) -> Result<(), ConfigError> {
        let is_valid = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if (1..=40).contains(&self.name.len()) && self.name.bytes().all(is_valid) {
            return Ok(());
        }
        Err(ConfigError::Name(self.name.clone()))
    }

    /// Returns the addresses that requests may go to.
    pub(crate) const fn addresses(&self) -> AddressPolicy {
        AddressPolicy { allow_private: self.allow_private, allow_loopback: self.allow_loopback }
    }

    /// Returns every problem, each with its key. Files with secrets are read; nothing is sent.
    pub fn problems(&self) -> Vec<(String, ConfigError)> {
        let named = |key: &str, error| (key.to_owned(), error);
        let mut problems: Vec<_> = self.check_name().err().map(|error| named("name", error)).into_iter().collect();
        if let Err(found) = self.check_url() {
            problems.extend(found.into_iter().map(|error| named("url", error)));
        }
        problems.extend(self.each_secret().into_iter().filter_map(|(key, secret)| Some((key, secret.err()?))));
        problems
    }

    /// Parses and checks the URL. The address of a host name is checked at each request.
    pub(crate) fn parse_url(&self) -> Result<Url, ConfigError> {
        self.check_url().map_err(|mut problems| problems.swap_remove(0))
    }

    /// Returns the URL, or at least one problem.
    fn check_url(&self) -> Result<Url, Vec<ConfigError>> {
        let wrong = |problem: String| ConfigError::Url { name: self.name.clone(), problem };
        let url = Url::parse(&self.url).map_err(|error| vec![wrong(format!("is invalid: {error}"))])?;
        let host = url.host_str().ok_or_else(|| vec![wrong("has no host".to_owned())])?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address: Option<IpAddr> = host.parse().ok();
        let is_local = address.map_or(host == "localhost", |address| address.is_loopback());
        let mut problems = Vec::new();
        if !url.username().is_empty() || url.password().is_some() {
            problems.push("contains credentials: requests are authenticated by their signature".to_owned());
        }
        match url.scheme() {
            // A loopback address may have http as soon as it is permitted.
            "http" if is_local && address.is_none() && !self.allow_loopback && !self.allow_http => {
                problems.push(format!("{}: set allow_loopback = true to permit it", Forbidden::Loopback));
            }
            "https" => {}
            "http" if self.allow_http || is_local => {}
            "http" => problems.push("must start with https, or set allow_http = true".to_owned()),
            other => problems.push(format!("starts with {other}: it must start with https")),
        }
        match address.and_then(|address| self.addresses().forbidden(address)) {
            Some(forbidden @ Forbidden::Loopback) => {
                problems.push(format!("{forbidden}: set allow_loopback = true to permit it"));
            }
            Some(forbidden @ Forbidden::Private) => {
                problems.push(format!("{forbidden}: set allow_private = true to permit it"));
            }
            Some(forbidden @ Forbidden::Special) => problems.push(forbidden.to_string()),
            None => {}
        }
        if problems.is_empty() { Ok(url) } else { Err(problems.into_iter().map(wrong).collect()) }
    }

    /// Reads the secrets. The first one is the newest; all of them sign and are accepted.
    pub(crate) fn read_secrets(&self) -> Result<Vec<WebhookSecret>, ConfigError> {
        self.each_secret().into_iter().map(|(_, secret)| secret).collect()
    }

    /// Reads each secret, with its key. Without any, there is one error.
    fn each_secret(&self) -> Vec<(String, Result<WebhookSecret, ConfigError>)> {
        let wrong = |problem: String| ConfigError::Secret { name: self.name.clone(), problem };
        let parse =
            |text: &str| WebhookSecret::parse(text).map_err(|error| wrong(format!("has an invalid secret: {error}")));
        let texts = self.secrets.iter().enumerate();
        let texts = texts.map(|(index, secret)| (format!("secrets.{index}"), parse(&secret.0)));
        let variable = |name: &String| match std::env::var(name) {
            Ok(text) => parse(&text),
            Err(_) => Err(wrong(format!("needs the environment variable {name}, which is not set"))),
        };
        let variables = self.secret_envs.iter().enumerate();
        let variables = variables.map(|(index, name)| (format!("secret_envs.{index}"), variable(name)));
        let file = |path: &PathBuf| {
            let problem =
                |error: std::io::Error| wrong(format!("cannot read its secret from {}: {error}", path.display()));
            let size = std::fs::metadata(path).map_err(problem)?.len();
            if size > MAX_SECRET_FILE {
                return Err(wrong(format!("has a secret file of {size} bytes: {}", path.display())));
            }
            // An editor may write a byte order mark.
            parse(std::fs::read_to_string(path).map_err(problem)?.trim_start_matches('\u{feff}').trim())
        };
        let files = self.secret_files.iter().enumerate();
        let files = files.map(|(index, path)| (format!("secret_files.{index}"), file(path)));
        let mut found: Vec<_> = texts.chain(variables).chain(files).collect();
        if found.is_empty() {
            let problem =
                "has no secret: set secrets, secret_files or secret_envs; make one with `openssl rand -base64 24`";
            found.push(("secrets".to_owned(), Err(wrong(problem.to_owned()))));
        }
        found
    }
}

impl SecretText {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }
}

/// Shows no secret.
impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretText")
    }
}

/// Writes no secret.
impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("********")
    }
}

fn default_timeout() -> Duration {
    Duration::from_secs(20)
}

fn default_max_body() -> usize {
    1 << 20
}

fn default_max_file() -> u64 {
    5 << 20
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text)
        .map_err(|error| de::Error::custom(format!("{text:?} is not a duration such as \"10s\" or \"5m\": {error}")))
}

fn duration_text<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn url_of(url: &str) -> Result<Url, ConfigError> {
        WebhookConfig::new("ci", url, SECRET).parse_url()
    }

    #[test]
    fn an_unknown_key_is_an_error_and_defaults_are_used() {
        let json = r#"{"name":"ci","url":"https://example.com/hook","secrets":["0123456789abcdef"],"timeout":"5s"}"#;
        let config: WebhookConfig = serde_json::from_str(json).unwrap();
        assert_eq!((config.timeout, config.max_body_bytes), (Duration::from_secs(5), 1 << 20));
        let unknown = serde_json::from_str::<WebhookConfig>(&json.replace("\"timeout\"", "\"time\""));
        assert!(unknown.unwrap_err().to_string().contains("unknown field `time`"));
    }

    #[test]
    fn no_secret_is_printed() {
        let config = WebhookConfig::new("ci", "https://example.com", SECRET);
        assert!(!format!("{config:?}").contains("MfKQ"));
        assert!(!serde_json::to_string(&config).unwrap().contains("MfKQ"));
    }

    #[test]
    fn a_url_must_be_https_and_must_not_name_a_private_address() {
        assert!(url_of("https://example.com/hook?x=1").is_ok());
        for url in [
            "http://example.com",
            "ftp://example.com",
            "https://user:pass@example.com",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://10.0.0.1/",
            "https://192.168.1.1:8443/",
            "https://169.254.169.254/latest",
            "https://[::ffff:10.0.0.1]/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0/",
            "not a url",
        ] {
            assert!(url_of(url).is_err(), "{url}");
        }
        let local = WebhookConfig { allow_loopback: true, ..WebhookConfig::new("ci", "http://127.0.0.1:1/", SECRET) };
        assert!(local.parse_url().is_ok());
        let private = WebhookConfig { allow_private: true, ..WebhookConfig::new("ci", "https://10.0.0.1/", SECRET) };
        assert!(private.parse_url().is_ok());
    }

    #[test]
    fn names_and_secrets_are_checked() {
        for name in ["", "A", "a/b", "a:b", &"a".repeat(41)] {
            assert!(WebhookConfig::new(name, "https://example.com", SECRET).check_name().is_err(), "{name}");
        }
        let mut config = WebhookConfig::new("ci", "https://example.com", "short");
        assert!(config.read_secrets().unwrap_err().to_string().contains("has an invalid secret"));
        config.secrets.clear();
        assert!(config.read_secrets().unwrap_err().to_string().contains("has no secret"));
        config.secret_envs = vec!["TEAMSTER_TEST_NO_SUCH_VARIABLE".to_owned()];
        assert!(config.read_secrets().unwrap_err().to_string().contains("TEAMSTER_TEST_NO_SUCH_VARIABLE"));
    }

    #[test]
    fn every_problem_is_reported_with_its_key() {
        let mut config = WebhookConfig::new("Ci", "http://user@10.0.0.1/", "short");
        config.secret_files = vec!["/no/such/file".into()];
        let problems = config.problems();
        let keys: Vec<&str> = problems.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["name", "url", "url", "url", "secrets.0", "secret_files.0"], "{problems:?}");
        assert!(WebhookConfig::new("ci", "https://example.com", SECRET).problems().is_empty());
    }

    #[test]
    fn http_to_a_loopback_address_needs_one_permission() {
        for url in ["http://127.0.0.1:1/", "http://localhost/", "http://[::1]/"] {
            let mut config = WebhookConfig::new("ci", url, SECRET);
            let problems = config.problems();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems.iter().all(|(_, error)| error.to_string().contains("set allow_loopback = true")));
            config.allow_loopback = true;
            assert!(config.problems().is_empty(), "{url}");
        }
    }
}
