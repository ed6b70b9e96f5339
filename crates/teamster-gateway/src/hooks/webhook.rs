//! Webhooks: the event as a signed request.

use std::sync::{Arc, OnceLock};

use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use teamster_channel::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use tokio::time::Instant;

use super::config::HookConfig;
use super::error::CallError;
use super::payload::Payload;

/// The HTTP client of all hooks, which is made at its first use.
#[derive(Clone, Debug, Default)]
pub(super) struct Client(Arc<OnceLock<Result<reqwest::Client, String>>>);

impl Client {
    fn get(&self) -> Result<&reqwest::Client, CallError> {
        let made = self.0.get_or_init(|| {
            // An error means that another provider is installed already, which works as well.
            _ = rustls::crypto::ring::default_provider().install_default();
            // A signed event belongs to the configured URL only.
            let client = reqwest::Client::builder().redirect(Policy::none()).build();
            client.map_err(|error| error.to_string())
        });
        made.as_ref().map_err(|error| CallError::Start(error.clone()))
    }
}

/// Sends an event, and returns the body of the answer.
pub(super) async fn send(
    config: &HookConfig,
    client: &Client,
    url: &str,
    payload: &Payload,
    deadline: Instant,
) -> Result<Vec<u8>, CallError> {
    let secret = config.read_secret()?;
    let request = client
        .get()?
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header(ID_HEADER, &payload.id)
        .header(TIMESTAMP_HEADER, payload.timestamp)
        .header(SIGNATURE_HEADER, secret.sign(&payload.id, payload.timestamp, &payload.body))
        .body(payload.body.clone());
    let exchange = async {
        let mut response = request.send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            return Err(CallError::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len().saturating_add(chunk.len()) > payload.max_answer {
                return Err(CallError::TooLong(payload.max_answer));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    };
    tokio::time::timeout_at(deadline, exchange).await.unwrap_or(Err(CallError::TimedOut(config.timeout)))
}

/// Describes an error without its URL, which may contain a secret.
fn unreachable(error: reqwest::Error) -> CallError {
    let error = error.without_url();
    let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    let texts: Vec<String> = std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect();
    CallError::Unreachable(texts.join(": "))
}
