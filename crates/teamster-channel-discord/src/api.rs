//! Calls of the REST API, <https://discord.com/developers/docs/reference>.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::multipart::Form;
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, Url, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{ConfigError, DiscordConfig, Token, is_local};
use crate::limits::{Limits, Route, Stated};

/// The largest answer of a call that is read.
const MAX_ANSWER: usize = 16 << 20;

/// The longest message of an error that is kept, in characters.
const MAX_MESSAGE: usize = 300;

/// The time limit of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit of a short call.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// The longest wait for a rate limit within a call. The caller learns of a longer one.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The number of answers with 429 after which a call gives up.
const MAX_LIMITED: u32 = 3;

/// The User-Agent that the service demands.
const USER_AGENT: &str =
    concat!("DiscordBot (https://github.com/teamster-dev/teamster, ", env!("CARGO_PKG_VERSION"), ")");

/// The hosts of attachments, besides that of the API.
const FILE_HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];

/// The REST API for one bot.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: reqwest::Client,
    url: Url,
    token: Token,
    limits: Arc<Mutex<Limits>>,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: Vec<&'a str>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) route: Route,
    pub(crate) timeout: Duration,
}

/// The body of a call. A form is made for each attempt.
pub(crate) enum Body<'a> {
    None,
    Json(&'a Value),
    Form(&'a (dyn Fn() -> Form + Sync)),
}

/// Why a call has no result. The texts have no token and no URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The service refuses the call.
    #[error("Discord answers {status}: {message} (code {code})")]
    Refused {
        /// The status.
        status: u16,
        /// The code, <https://discord.com/developers/docs/topics/opcodes-and-status-codes#json>.
        code: u64,
        /// What is wrong.
        message: String,
    },
    /// Too many calls. The call has no effect.
    #[error("Discord demands a wait of {} ms", after.as_millis())]
    Limited {
        /// How long to wait.
        after: Duration,
        /// Whether all calls must wait.
        is_global: bool,
    },
    /// The service was not reached.
    #[error("{0}")]
    NotSent(String),
    /// The connection broke after the call was sent.
    #[error("{0}")]
    Unknown(String),
    /// The answer is not one of the API.
    #[error("Discord answers {status} with what is no answer of its API")]
    Foreign {
        /// The status.
        status: u16,
    },
    /// The content is larger than permitted.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
}

impl CallError {
    /// Returns the status.
    pub(crate) const fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } | Self::Foreign { status } => Some(*status),
            _ => None,
        }
    }

    /// Returns the service's own code.
    pub(crate) const fn code(&self) -> Option<u64> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns whether another attempt has the same result.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.status(), Some(400..=499)) || matches!(self, Self::TooLarge(_))
    }

    /// Returns whether it is unknown if the call had an effect.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_)) || self.status().is_some_and(|status| !(400..500).contains(&status))
    }
}

/// An error of the API. One without a code or message is of another program, such as a proxy.
#[derive(Deserialize)]
struct Refusal {
    code: u64,
    message: String,
    errors: Option<Value>,
}

/// A limit of the API.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Limit {
    retry_after: Option<f64>,
    global: bool,
}

/// The code with which the network in front of the API refuses a client. It is no answer to the call.
const OF_NETWORK: u64 = 40_333;

impl<'a> Call<'a> {
    /// Describes a call without a query, with the usual time limit.
    pub(crate) fn new(method: Method, name: &'static str, major: &str, path: Vec<&'a str>) -> Self {
        let route = Route { name, major: major.to_owned() };
        Self { method, path, query: Vec::new(), route, timeout: CALL_TIMEOUT }
    }
}

impl Api {
    pub(crate) fn new(config: &DiscordConfig) -> Result<Self, ConfigError> {
        let url = config.parse_api_url()?;
        // The first caller of the process decides; a provider that is there already is as good.
        _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            // A redirect would send the token to another host.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(USER_AGENT);
        if is_local(&url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ConfigError::Client(error.without_url().to_string()))?;
        Ok(Self { client, url, token: config.token.clone(), limits: Arc::default() })
    }

    /// Makes a call. It waits for rate limits of a few seconds; a call that was answered with 429 had no effect.
    pub(crate) async fn call<T: DeserializeOwned>(&self, call: &Call<'_>, body: Body<'_>) -> Result<T, CallError> {
        let bytes = self.bytes(call, body).await?;
        // A call without a result is answered with 204.
        let bytes = if bytes.is_empty() { b"null".as_slice() } else { &bytes };
        serde_json::from_slice(bytes).map_err(|_| CallError::Foreign { status: 200 })
    }

    async fn bytes(&self, call: &Call<'_>, body: Body<'_>) -> Result<Vec<u8>, CallError> {
        let mut limited = 0;
        loop {
            let (wait, is_global) = {
                let (limits, now) = (self.limits(), Instant::now());
                (limits.wait(&call.route, now), limits.is_global(now))
            };
            if wait > MAX_WAIT {
                return Err(CallError::Limited { after: wait, is_global });
            }
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            let answered = self.once(call, &body).await;
            match answered {
                Err(CallError::Limited { after, .. }) if after <= MAX_WAIT && limited < MAX_LIMITED => limited += 1,
                other => return other,
            }
        }
    }

    async fn once(&self, call: &Call<'_>, body: &Body<'_>) -> Result<Vec<u8>, CallError> {
        let mut request = self.client.request(call.method.clone(), self.url_of(call)?);
        request = request.header(header::AUTHORIZATION, format!("Bot {}", self.token.expose()));
        request = match body {
            Body::None => request,
            Body::Json(value) => request.header(header::CONTENT_TYPE, "application/json").body(value.to_string()),
            Body::Form(form) => request.multipart(form()),
        };
        self.answer(request, call).await
    }

    /// Reads a file of at most `max` bytes. The URL must be one of the service; it does not get the token.
    pub(crate) async fn download(&self, url: &str, max: u64, timeout: Duration) -> Result<Vec<u8>, CallError> {
        let url = Url::parse(url).map_err(|_| CallError::NotSent("the URL of the file is invalid".to_owned()))?;
        let is_known = url.origin() == self.url.origin()
            || (url.scheme() == "https" && url.host_str().is_some_and(|host| FILE_HOSTS.contains(&host)));
        if !is_known {
            return Err(CallError::NotSent("the URL of the file is not one of Discord".to_owned()));
        }
        let response = self.client.get(url).timeout(timeout).send().await.map_err(|error| self.failed(error))?;
        let status = response.status().as_u16();
        if !response.status().is_success() {
            return Err(CallError::Foreign { status });
        }
        self.read(response, max).await
    }

    /// Returns a URL below that of the API. The segments of the path are escaped.
    fn url_of(&self, call: &Call<'_>) -> Result<Url, CallError> {
        let mut url = self.url.clone();
        let segments = url.path_segments_mut();
        let mut segments = segments.map_err(|()| CallError::NotSent("the URL of the API has no path".to_owned()))?;
        segments.pop_if_empty().extend(&call.path);
        drop(segments);
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        Ok(url)
    }

    async fn answer(&self, request: RequestBuilder, call: &Call<'_>) -> Result<Vec<u8>, CallError> {
        let response = request.timeout(call.timeout).send().await.map_err(|error| self.failed(error))?;
        let status = response.status().as_u16();
        let is_success = response.status().is_success();
        let (stated, retry_header, is_global) = stated(response.headers());
        self.limits().stated(&call.route, stated, Instant::now());
        let max = u64::try_from(MAX_ANSWER).unwrap_or(u64::MAX);
        let body = self.read(response, max).await.map_err(|error| match error {
            CallError::TooLarge(_) => CallError::Foreign { status },
            other => other,
        })?;
        if is_success {
            return Ok(body);
        }
        if status == 429 {
            // Without a body of the API it is the limit of a proxy in front of it, which concerns all calls.
            let (after, is_global) = match serde_json::from_slice::<Limit>(&body) {
                Ok(limit) => (limit.retry_after.and_then(seconds), limit.global || is_global),
                Err(_) => (None, true),
            };
            let after = after.or(retry_header).unwrap_or(Duration::from_secs(1));
            self.limits().limited(&call.route, after, is_global, Instant::now());
            return Err(CallError::Limited { after, is_global });
        }
        let refusal = serde_json::from_slice::<Refusal>(&body).ok().filter(|refusal| refusal.code != OF_NETWORK);
        let Refusal { code, message, errors } = refusal.ok_or(CallError::Foreign { status })?;
        let message = errors.map_or_else(|| message.clone(), |errors| format!("{message}: {errors}"));
        Err(CallError::Refused { status, code, message: self.clean(&message) })
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
        text.replace(self.token.expose(), "TOKEN").chars().take(MAX_MESSAGE).collect()
    }

    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what the headers state: the bucket, the wait after a 429, and whether it is that of all calls.
fn stated(headers: &header::HeaderMap) -> (Stated, Option<Duration>, bool) {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let number = |name: &str| text(name).and_then(|text| text.parse::<f64>().ok()).and_then(seconds);
    let stated = Stated {
        bucket: text("x-ratelimit-bucket").map(str::to_owned),
        remaining: text("x-ratelimit-remaining").and_then(|text| text.parse().ok()),
        reset_after: number("x-ratelimit-reset-after"),
    };
    let is_global = text("x-ratelimit-global").is_some() || text("x-ratelimit-scope") == Some("global");
    (stated, number("retry-after"), is_global)
}

/// Returns a number of seconds with decimals.
fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}
