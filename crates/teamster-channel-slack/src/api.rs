//! Calls of the Web API, <https://docs.slack.dev/apis/web-api/#posting-forms>.

use std::error::Error;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{ConfigError, SlackConfig, Token, is_local};
use crate::error::CallError;

/// The largest answer of a call that is read.
const MAX_ANSWER: u64 = 16 << 20;

/// The longest text of an error that is kept, in characters.
const MAX_DESCRIPTION: usize = 300;

/// The time limit of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit of a short call.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// How long to wait after a 429 that does not state it.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);

/// The limits of the time to wait after a 429.
const MIN_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_hours(24);

/// The number of redirects of a download.
const MAX_REDIRECTS: u32 = 3;

/// The domains of Slack: files, and the URLs of responses, are on hosts below them.
const SLACK_DOMAINS: [&str; 2] = ["slack.com", "slack-gov.com"];

/// The parameters of a call. Objects and lists are JSON.
pub(crate) type Parameters<'a> = Vec<(&'static str, std::borrow::Cow<'a, str>)>;

/// The Web API for one app.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: Client,
    url: Url,
    bot_token: Token,
    app_token: Token,
}

/// An answer with what its headers state.
pub(crate) struct Answered<T> {
    pub(crate) result: T,
    /// The scopes of the token, if the service states them.
    pub(crate) scopes: Option<String>,
}

/// What every answer has.
#[derive(Deserialize)]
struct Envelope {
    ok: bool,
    error: Option<String>,
    needed: Option<String>,
    response_metadata: Option<ResponseMetadata>,
}

#[derive(Deserialize)]
struct ResponseMetadata {
    #[serde(default)]
    messages: Vec<String>,
}

impl Api {
    pub(crate) fn new(config: &SlackConfig) -> Result<Self, ConfigError> {
        let url = config.parse_url()?;
        // The first caller of the process decides; a provider that is there already is as good.
        _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            // Each target is checked first: a redirect could send the token to another host.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("teamster/", env!("CARGO_PKG_VERSION")));
        if is_local(&url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ConfigError::Client(error.without_url().to_string()))?;
        let (bot_token, app_token) = (config.bot_token.clone(), config.app_token.clone());
        Ok(Self { client, url, bot_token, app_token })
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Calls a method with the token of the bot.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &Parameters<'_>,
        timeout: Duration,
    ) -> Result<T, CallError> {
        Ok(self.call_with(&self.bot_token, method, parameters, timeout).await?.result)
    }

    /// Asks with the token of the bot who it is.
    pub(crate) async fn auth_test<T: DeserializeOwned>(&self) -> Result<Answered<T>, CallError> {
        self.call_with(&self.bot_token, "auth.test", &Vec::new(), CALL_TIMEOUT).await
    }

    /// Calls a method with the token of the app.
    pub(crate) async fn call_as_app<T: DeserializeOwned>(&self, method: &'static str) -> Result<T, CallError> {
        Ok(self.call_with(&self.app_token, method, &Vec::new(), CALL_TIMEOUT).await?.result)
    }

    async fn call_with<T: DeserializeOwned>(
        &self,
        token: &Token,
        method: &'static str,
        parameters: &Parameters<'_>,
        timeout: Duration,
    ) -> Result<Answered<T>, CallError> {
        let request = self
            .client
            .post(self.method_url(method)?)
            .header(AUTHORIZATION, bearer(token)?)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form(parameters));
        self.answer(method, request, timeout).await
    }

    /// Sends the bytes of a file to the URL that the service has given for it. It contains its own secret.
    pub(crate) async fn upload(&self, url: &str, bytes: Vec<u8>, timeout: Duration) -> Result<(), CallError> {
        let url = self.trusted(url)?;
        let request = self.client.post(url).header(CONTENT_TYPE, "application/octet-stream").body(bytes);
        let response = request.timeout(timeout).send().await.map_err(|error| self.failed(error))?;
        accepted("an upload", &response)
    }

    /// Answers at the URL of a press or a command.
    pub(crate) async fn respond(&self, url: &str, body: &Value) -> Result<(), CallError> {
        let url = self.trusted(url)?;
        let request = self.client.post(url).header(CONTENT_TYPE, "application/json").body(body.to_string());
        let response = request.timeout(CALL_TIMEOUT).send().await.map_err(|error| self.failed(error))?;
        accepted("a response", &response)
    }

    /// Reads a file of at most `max` bytes. Its media type is that of the answer. Redirects are followed within Slack.
    pub(crate) async fn download(
        &self,
        url: &str,
        max: u64,
        timeout: Duration,
    ) -> Result<(Vec<u8>, String), CallError> {
        let deadline = Instant::now() + timeout;
        let mut url = self.trusted(url)?;
        let mut redirects = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let request = self.client.get(url.clone()).header(AUTHORIZATION, bearer(&self.bot_token)?);
            let response = request.timeout(left).send().await.map_err(|error| self.failed(error))?;
            let target = text_of(response.headers(), LOCATION.as_str()).filter(|_| response.status().is_redirection());
            if let Some(target) = target.filter(|_| redirects < MAX_REDIRECTS) {
                redirects += 1;
                url = self.trusted(url.join(&target).map_err(|_| not_of_slack())?.as_str())?;
                continue;
            }
            accepted("a download", &response)?;
            let media_type = text_of(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
            return Ok((self.read(response, max).await?, media_type));
        }
    }

    /// Parses a URL of the service. Any other one gets no request: it may be one of a person, and the token is sent with it.
    pub(crate) fn trusted(&self, url: &str) -> Result<Url, CallError> {
        let url = Url::parse(url).map_err(|_| not_of_slack())?;
        let host = url.host_str().unwrap_or_default();
        let is_below = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        let is_slack = url.scheme() == "https" && SLACK_DOMAINS.iter().any(|domain| is_below(domain));
        // A server of one's own has its files on the same host.
        let is_own = url.scheme() == self.url.scheme() && url.host_str() == self.url.host_str();
        if is_slack || is_own { Ok(url) } else { Err(not_of_slack()) }
    }

    fn method_url(&self, method: &str) -> Result<Url, CallError> {
        let mut url = self.url.clone();
        let segments = url.path_segments_mut();
        let mut segments =
            segments.map_err(|()| CallError::NotSent("the URL of the Web API has no path".to_owned()))?;
        segments.pop_if_empty().push(method);
        drop(segments);
        Ok(url)
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        method: &'static str,
        request: RequestBuilder,
        timeout: Duration,
    ) -> Result<Answered<T>, CallError> {
        let response = request.timeout(timeout).send().await.map_err(|error| self.failed(error))?;
        let code = response.status().as_u16();
        if code == 429 {
            return Err(CallError::Limited { method, retry_after: retry_after(response.headers()) });
        }
        let scopes = text_of(response.headers(), "x-oauth-scopes");
        let body = self.read(response, MAX_ANSWER).await.map_err(|error| match error {
            CallError::TooLarge(_) => CallError::Foreign { code },
            other => other,
        })?;
        let envelope: Envelope = serde_json::from_slice(&body).map_err(|_| CallError::Foreign { code })?;
        if !envelope.ok {
            return Err(self.refused(method, envelope));
        }
        let result = serde_json::from_slice(&body).map_err(|_| CallError::Foreign { code })?;
        Ok(Answered { result, scopes })
    }

    fn refused(&self, method: &'static str, envelope: Envelope) -> CallError {
        let Envelope { error, needed, response_metadata, .. } = envelope;
        let error = self.clean(&error.unwrap_or_default());
        if matches!(error.as_str(), "ratelimited" | "rate_limited") {
            return CallError::Limited { method, retry_after: DEFAULT_WAIT };
        }
        let needed = needed.filter(|_| error == "missing_scope").map(|needed| self.clean(&needed));
        let messages = response_metadata.map(|metadata| metadata.messages).unwrap_or_default();
        let parts: Vec<_> = needed.iter().map(|needed| format!("needs {needed}")).chain(messages).collect();
        let detail = if parts.is_empty() { String::new() } else { format!(" ({})", self.clean(&parts.join("; "))) };
        CallError::Refused { method, error, detail, needed }
    }

    async fn read(&self, mut response: Response, max: u64) -> Result<Vec<u8>, CallError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(error))? {
            let size = body.len().saturating_add(chunk.len());
            if u64::try_from(size).is_ok_and(|size| size > max) {
                return Err(CallError::TooLarge(max));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Returns the error of a call without an answer.
    pub(crate) fn failed(&self, error: reqwest::Error) -> CallError {
        let is_unsent = error.is_connect() || error.is_builder();
        let error = error.without_url();
        let causes = std::iter::successors(Error::source(&error), |cause| (*cause).source());
        let texts: Vec<_> = std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect();
        let reason = self.clean(&texts.join(": "));
        if is_unsent { CallError::NotSent(reason) } else { CallError::Unknown(reason) }
    }

    /// Returns a text of bounded length without the tokens.
    fn clean(&self, text: &str) -> String {
        let text = text.replace(self.bot_token.expose(), "TOKEN").replace(self.app_token.expose(), "TOKEN");
        text.chars().take(MAX_DESCRIPTION).collect()
    }
}

/// Checks the status of an answer that is none of the Web API.
fn accepted(method: &'static str, response: &Response) -> Result<(), CallError> {
    match response.status().as_u16() {
        429 => Err(CallError::Limited { method, retry_after: retry_after(response.headers()) }),
        200..300 => Ok(()),
        code => Err(CallError::Foreign { code }),
    }
}

/// Returns how long to wait after a 429: at least a second, so that no loop is without a pause, and at most a day, so that it can be
/// added to a time.
fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = text_of(headers, RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
    seconds.map_or(DEFAULT_WAIT, Duration::from_secs).clamp(MIN_WAIT, MAX_WAIT)
}

fn not_of_slack() -> CallError {
    CallError::NotSent("the URL is not one of Slack".to_owned())
}

fn form(parameters: &Parameters<'_>) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}

fn bearer(token: &Token) -> Result<HeaderValue, CallError> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
    let mut value = value.map_err(|_| CallError::NotSent("the token is invalid".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TokenKind;

    #[test]
    fn the_time_to_wait_after_a_limit_is_never_zero_and_never_endless() {
        let wait = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            retry_after(&headers)
        };
        assert_eq!((wait("0"), wait("35")), (MIN_WAIT, Duration::from_secs(35)));
        assert_eq!((wait("18446744073709551615"), wait("soon")), (MAX_WAIT, DEFAULT_WAIT));
        assert_eq!(retry_after(&HeaderMap::new()), DEFAULT_WAIT);
    }

    #[test]
    fn a_token_is_sent_to_hosts_of_slack_only() {
        let token = |kind, text| Token::new(kind, text).unwrap();
        let config = SlackConfig::new(token(TokenKind::Bot, "xoxb-1"), token(TokenKind::App, "xapp-1"));
        let api = Api::new(&config).unwrap();
        for url in ["https://files.slack.com/x", "https://slack.com/x", "https://hooks.slack-gov.com/x"] {
            assert!(api.trusted(url).is_ok(), "{url}");
        }
        for url in [
            "http://files.slack.com/x",
            "https://slack.com.evil.org/x",
            "https://evilslack.com/x",
            "https://docs.google.com/x",
            "file:///etc/passwd",
            "x",
        ] {
            assert!(api.trusted(url).is_err(), "{url}");
        }
    }
}
