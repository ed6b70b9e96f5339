//! The implementation of the channel.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use reqwest::redirect::Policy;
use reqwest::{Response, Url, header};
use teamster_channel::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookSecret};
use teamster_channel::{
    Capabilities, Channel, ChannelError, EditOutcome, Inbox, InboxError, Outgoing, PromptDecision, Receipt, SendError,
    SendOutcome, TextLimit, TextUnit,
};
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::address::{ForbiddenHost, GuardedResolver};
use crate::config::{ConfigError, WebhookConfig};
use crate::inbound::Request;
use crate::outbound;
use crate::recent::RecentIds;

/// How old a request may be.
pub(crate) const MAX_AGE: Duration = Duration::from_mins(5);

/// How far in the future a request may be.
pub(crate) const MAX_SKEW: Duration = Duration::from_secs(30);

/// The number of requests that wait.
const MAX_WAITING: usize = 64;

/// The number of requests that are handled at the same time.
const MAX_HANDLED: usize = 16;

/// The number of bytes that are read of an answer, so that its connection ends cleanly.
const MAX_ANSWER: usize = 64 << 10;

/// The longest text of one request in bytes.
const MAX_TEXT: usize = 1 << 20;

/// A webhook channel. Programs send to its [`router`](crate::router), and get answers at its URL.
#[derive(Debug)]
pub struct WebhookChannel {
    config: WebhookConfig,
    name: String,
    url: Url,
    secrets: Vec<WebhookSecret>,
    client: reqwest::Client,
    sender: mpsc::Sender<Received>,
    receiver: Mutex<mpsc::Receiver<Received>>,
    /// Whether [`receive`](Channel::receive) has ended.
    has_ended: watch::Sender<bool>,
}

/// A request, and where its outcome goes.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Reply, InboxError>>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Message(Receipt),
    Answer(PromptDecision),
    Command(String),
    Edit(EditOutcome),
    /// The same command or edit was received before.
    Repeated,
    /// Too many commands and edits.
    Busy,
}

impl WebhookChannel {
    /// Creates a channel.
    ///
    /// # Errors
    /// The configuration is invalid, or a secret cannot be read.
    pub fn new(config: WebhookConfig) -> Result<Self, ConfigError> {
        config.check_name()?;
        let (url, secrets) = (config.parse_url()?, config.read_secrets()?);
        // An error means that another provider is installed already, which works as well.
        _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            // A proxy would connect to addresses that are not checked.
            .no_proxy()
            // Each request opens a new connection, to an address that is checked.
            .pool_max_idle_per_host(0)
            .dns_resolver(GuardedResolver(config.addresses()))
            .connect_timeout(config.timeout.min(Duration::from_secs(10)))
            .timeout(config.timeout)
            .user_agent(concat!("teamster/", env!("CARGO_PKG_VERSION")))
            .build();
        let client =
            client.map_err(|error| ConfigError::Url { name: config.name.clone(), problem: error.to_string() })?;
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let name = format!("webhook-{}", config.name);
        Ok(Self {
            config,
            name,
            url,
            secrets,
            client,
            sender,
            receiver: Mutex::new(receiver),
            has_ended: watch::Sender::new(false),
        })
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &WebhookConfig {
        &self.config
    }

    pub(crate) fn secrets(&self) -> &[WebhookSecret] {
        &self.secrets
    }

    /// Passes a request to [`receive`](Channel::receive). `None`: too many requests wait, or the gateway does not
    /// receive.
    pub(crate) async fn hand_over(&self, id: String, request: Request) -> Option<Result<Reply, InboxError>> {
        let (reply, outcome) = oneshot::channel();
        self.sender.try_send(Received { id, request, reply }).ok()?;
        let mut has_ended = self.has_ended.subscribe();
        tokio::select! {
            biased;
            outcome = tokio::time::timeout(self.config.timeout, outcome) => outcome.ok()?.ok(),
            // A shutdown does not wait for requests that nothing takes.
            _ = has_ended.wait_for(|has_ended| *has_ended) => None,
        }
    }

    async fn post(&self, outgoing: &Outgoing, body: Vec<u8>) -> SendOutcome {
        // Each attempt has a new signature and the same id.
        let timestamp = unix_seconds();
        let sign = |secret: &WebhookSecret| secret.sign(&outgoing.key, timestamp, &body);
        let signatures = self.secrets.iter().map(sign).collect::<Vec<_>>().join(" ");
        let request = self
            .client
            .post(self.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(ID_HEADER, &outgoing.key)
            .header(TIMESTAMP_HEADER, timestamp)
            .header(SIGNATURE_HEADER, signatures)
            .body(body);
        match request.send().await {
            Ok(response) => {
                let retry_after = response.headers().get(header::RETRY_AFTER);
                let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
                let status = response.status();
                discard(response).await;
                outbound::outcome(status, retry_after.as_deref(), jiff::Timestamp::now())
            }
            Err(error) => failed(error),
        }
    }
}

/// Reads the start of a response. The body is not used, so a failure has no consequence.
async fn discard(mut response: Response) {
    let mut left = MAX_ANSWER;
    while let Ok(Some(chunk)) = response.chunk().await {
        match left.checked_sub(chunk.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// Returns the outcome of a request without an answer. The text has no URL, which may contain a secret.
fn failed(error: reqwest::Error) -> SendOutcome {
    let (is_connect, is_builder) = (error.is_connect(), error.is_builder());
    let error = error.without_url();
    let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    let texts: Vec<_> = std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect();
    let reason = texts.join(": ");
    if is_builder {
        SendOutcome::NotSent(SendError::Never(reason))
    } else if is_connect {
        SendOutcome::NotSent(SendError::Unavailable { reason, after: None })
    } else {
        SendOutcome::Unknown(reason)
    }
}

/// Handles a request. Commands and edits run one by one, each id once.
async fn handle(inbox: &dyn Inbox, recent: &Mutex<RecentIds>, received: Received) {
    let Received { id, request, reply } = received;
    let outcome = match request {
        Request::Message(message) => inbox.message(message).await.map(Reply::Message),
        Request::Answer(answer) => inbox.answer(answer).await.map(Reply::Answer),
        Request::Command(_) | Request::Edit(_) => once(inbox, recent, &id, request).await,
    };
    // The program may have closed its connection.
    _ = reply.send(outcome);
}

async fn once(inbox: &dyn Inbox, recent: &Mutex<RecentIds>, id: &str, request: Request) -> Result<Reply, InboxError> {
    let mut recent = recent.lock().await;
    let now = unix_seconds();
    if recent.contains(id, now) {
        return Ok(Reply::Repeated);
    }
    if recent.is_full(now) {
        return Ok(Reply::Busy);
    }
    let reply = match request {
        Request::Command(command) => Reply::Command(inbox.command(command).await?.text),
        Request::Edit(edit) => {
            let outcome = inbox.edit(edit).await?;
            if outcome != EditOutcome::Edited {
                // It had no effect. The program may send it again.
                return Ok(Reply::Edit(outcome));
            }
            Reply::Edit(outcome)
        }
        Request::Message(_) | Request::Answer(_) => return Ok(Reply::Repeated),
    };
    // The id is stored after the effect: after a crash in between, a command that its sender repeats runs again, and
    // none is lost.
    let window = i64::try_from((MAX_AGE + MAX_SKEW).as_secs()).unwrap_or(i64::MAX);
    recent.add(inbox, id, now.saturating_add(window)).await?;
    Ok(reply)
}

#[async_trait]
impl Channel for WebhookChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            threads: true,
            buttons: true,
            max_file_bytes: self.config.max_file_bytes,
            text_limit: TextLimit { max: MAX_TEXT, unit: TextUnit::Bytes },
            // The receiver recognizes the `webhook-id`.
            recognizes_repeats_for: Some(Duration::MAX),
            senders_are_authenticated: true,
            channel_interval: self.config.interval,
            // The client's own limit is shorter, so that the client can report whether the request was sent.
            send_timeout: self.config.timeout.saturating_add(Duration::from_secs(5)),
            max_attempts: self.config.max_attempts,
            ..Capabilities::default()
        }
    }

    /// Checks that the host has a permitted address. A webhook has no request without an effect.
    async fn check(&self) -> Result<(), ChannelError> {
        let unreachable = |reason: String| ChannelError::Unreachable { service: "the receiver of the webhook", reason };
        let host = self.url.host_str().unwrap_or_default().to_owned();
        if host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>().is_ok() {
            return Ok(());
        }
        let name = host.parse().map_err(|_| ChannelError::Setting(format!("the host {host} is invalid")))?;
        let resolver = GuardedResolver(self.config.addresses());
        let found = reqwest::dns::Resolve::resolve(&resolver, name).await;
        match found {
            Ok(_) => Ok(()),
            Err(error) if error.is::<ForbiddenHost>() => Err(ChannelError::Setting(error.to_string())),
            Err(error) => Err(unreachable(error.to_string())),
        }
    }

    async fn receive(&self, inbox: &dyn Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        let mut requests = self.receiver.lock().await;
        let recent = RecentIds::load(inbox).await;
        let recent = Mutex::new(recent.map_err(|error| ChannelError::Setting(error.to_string()))?);
        let mut handled = FuturesUnordered::new();
        self.has_ended.send_replace(false);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(received) = requests.recv(), if handled.len() < MAX_HANDLED => {
                    handled.push(handle(inbox, &recent, received));
                }
                Some(()) = handled.next() => {}
            }
        }
        // Each request that was started gets its reply.
        while handled.next().await.is_some() {}
        self.has_ended.send_replace(true);
        Ok(())
    }

    async fn send(&self, outgoing: &Outgoing) -> SendOutcome {
        match outbound::body(&self.name, outgoing) {
            Ok(body) => self.post(outgoing, body).await,
            Err(error) => {
                SendOutcome::NotSent(SendError::Never(format!("the item cannot be written as JSON: {error}")))
            }
        }
    }
}

/// Returns the time in seconds since 1970.
pub(crate) fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
