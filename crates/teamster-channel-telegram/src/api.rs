//! Calls of the Bot API, <https://core.telegram.org/bots/api#making-requests>.

use std::error::Error;
use std::time::Duration;

use reqwest::multipart::Form;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, Url, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, TelegramConfig, Token, is_local};

/// The largest answer of a call that is read.
const MAX_ANSWER: usize = 16 << 20;

/// The longest description of an error that is kept, in characters.
const MAX_DESCRIPTION: usize = 300;

/// The longest time to wait after a 429, so that it can be added to a time.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// The time limit of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit of a short call.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// The Bot API for one bot.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: reqwest::Client,
    url: Url,
    token: Token,
}

/// Why a call has no result. The texts have no token and no URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The service refuses the call.
    #[error("Telegram answers {code}: {description}")]
    Refused {
        /// The `error_code`, which is the status.
        code: u16,
        /// What is wrong.
        description: String,
        /// How long to wait.
        retry_after: Option<Duration>,
        /// The new id of the chat.
        migrate_to: Option<i64>,
    },
    /// The service was not reached.
    #[error("{0}")]
    NotSent(String),
    /// The connection broke after the call was sent.
    #[error("{0}")]
    Unknown(String),
    /// The answer is not one of the Bot API.
    #[error("Telegram answers {code} with what is no answer of the Bot API")]
    Foreign {
        /// The status.
        code: u16,
    },
    /// The content is larger than permitted.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
}

impl CallError {
    /// Returns the status.
    pub(crate) const fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } | Self::Foreign { code } => Some(*code),
            _ => None,
        }
    }

    /// Returns whether the service refuses the call, and its description contains this. The comparison ignores case.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        match self {
            Self::Refused { description, .. } => description.to_ascii_lowercase().contains(&text.to_ascii_lowercase()),
            _ => false,
        }
    }

    /// Returns whether another attempt has the same result.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.code(), Some(400..=428 | 430..=499)) || matches!(self, Self::TooLarge(_))
    }
}

/// An answer of the Bot API.
#[derive(Deserialize)]
struct Answer<T> {
    ok: bool,
    result: Option<T>,
    error_code: Option<u16>,
    description: Option<String>,
    parameters: Option<Parameters>,
}

#[derive(Default, Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

impl Api {
    pub(crate) fn new(config: &TelegramConfig) -> Result<Self, ConfigError> {
        let url = config.parse_url()?;
        // The first caller of the process decides; a provider that is there already is as good.
        _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            // A redirect would send the token to another host.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("teamster/", env!("CARGO_PKG_VERSION")));
        if is_local(&url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ConfigError::Client(error.without_url().to_string()))?;
        Ok(Self { client, url, token: config.token.clone() })
    }

    /// Calls a method with parameters in JSON.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: &impl Serialize,
        timeout: Duration,
    ) -> Result<T, CallError> {
        let body = serde_json::to_vec(parameters).map_err(|error| CallError::NotSent(error.to_string()))?;
        let request = self.client.post(self.method_url(method)?).header(header::CONTENT_TYPE, "application/json");
        self.answer(request.body(body), timeout).await
    }

    /// Calls a method with parameters and a file.
    pub(crate) async fn upload<T: DeserializeOwned>(
        &self,
        method: &'static str,
        form: Form,
        timeout: Duration,
    ) -> Result<T, CallError> {
        let request = self.client.post(self.method_url(method)?).multipart(form);
        self.answer(request, timeout).await
    }

    /// Reads a file of at most `max` bytes.
    pub(crate) async fn download(&self, path: &str, max: u64, timeout: Duration) -> Result<Vec<u8>, CallError> {
        let url = self.url_of(&["file", &format!("bot{}", self.token.expose())], path)?;
        let response = self.client.get(url).timeout(timeout).send().await.map_err(|error| self.failed(error))?;
        let code = response.status().as_u16();
        if !response.status().is_success() {
            return Err(CallError::Foreign { code });
        }
        self.read(response, max).await
    }

    fn method_url(&self, method: &str) -> Result<Url, CallError> {
        self.url_of(&[&format!("bot{}", self.token.expose())], method)
    }

    /// Returns a URL below that of the API. The segments of the path are escaped.
    fn url_of(&self, first: &[&str], path: &str) -> Result<Url, CallError> {
        let mut url = self.url.clone();
        let segments = url.path_segments_mut();
        let mut segments =
            segments.map_err(|()| CallError::NotSent("the URL of the Bot API has no path".to_owned()))?;
        // A segment that is `..` is dropped by the URL parser.
        segments.pop_if_empty().extend(first).extend(path.split('/').filter(|part| !part.is_empty()));
        drop(segments);
        Ok(url)
    }

    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder, timeout: Duration) -> Result<T, CallError> {
        let response = request.timeout(timeout).send().await.map_err(|error| self.failed(error))?;
        let code = response.status().as_u16();
        let max = u64::try_from(MAX_ANSWER).unwrap_or(u64::MAX);
        let body = self.read(response, max).await.map_err(|error| match error {
            CallError::TooLarge(_) => CallError::Foreign { code },
            other => other,
        })?;
        let answer: Answer<T> = serde_json::from_slice(&body).map_err(|_| CallError::Foreign { code })?;
        if let (true, Some(result)) = (answer.ok, answer.result) {
            return Ok(result);
        }
        let Parameters { retry_after, migrate_to_chat_id } = answer.parameters.unwrap_or_default();
        Err(CallError::Refused {
            code: answer.error_code.unwrap_or(code),
            description: self.clean(&answer.description.unwrap_or_default()),
            retry_after: retry_after.map(|seconds| Duration::from_secs(seconds).min(MAX_WAIT)),
            migrate_to: migrate_to_chat_id,
        })
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
    fn failed(&self, error: reqwest::Error) -> CallError {
        let is_unsent = error.is_connect() || error.is_builder();
        let error = error.without_url();
        let causes = std::iter::successors(Error::source(&error), |cause| (*cause).source());
        let texts: Vec<_> = std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect();
        let reason = self.clean(&texts.join(": "));
        if is_unsent { CallError::NotSent(reason) } else { CallError::Unknown(reason) }
    }

    /// Returns a text of bounded length without the token.
    fn clean(&self, text: &str) -> String {
        text.replace(self.token.expose(), "TOKEN").chars().take(MAX_DESCRIPTION).collect()
    }
}
