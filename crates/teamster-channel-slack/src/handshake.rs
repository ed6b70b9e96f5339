//! The WebSocket of Socket Mode: its URL, and the handshake (RFC 6455, section 4).

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONNECTION, UPGRADE};
use reqwest::{StatusCode, Upgraded, Url};
use serde::Deserialize;
use sha1_smol::Sha1;
use tokio_websockets::{ClientBuilder, Limits, WebSocketStream};

use crate::api::Api;
use crate::error::CallError;

/// The time limit of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);

/// The largest frame that is read. A message has at most 40,000 characters.
const MAX_FRAME: usize = 4 << 20;

/// What the key of a handshake is hashed with.
const WEBSOCKET_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

pub(crate) type Stream = WebSocketStream<Upgraded>;

#[derive(Deserialize)]
struct Opened {
    url: String,
}

impl Api {
    /// Opens a WebSocket. Its URL is valid once.
    pub(crate) async fn open_socket(&self) -> Result<Stream, CallError> {
        let opened: Opened = self.call_as_app("apps.connections.open").await?;
        let url = self.socket_url(&opened.url)?;
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, self.handshake(url)).await {
            Ok(stream) => stream,
            Err(_) => Err(CallError::Unknown("the handshake of the WebSocket takes too long".to_owned())),
        }
    }

    /// Returns the URL of a WebSocket with the scheme of its handshake. It must be one of the service, and as safe as the Web API.
    fn socket_url(&self, url: &str) -> Result<Url, CallError> {
        let url = match url.split_once("://") {
            Some(("wss", rest)) => format!("https://{rest}"),
            Some(("ws", rest)) => format!("http://{rest}"),
            _ => url.to_owned(),
        };
        self.trusted(&url)
    }

    async fn handshake(&self, url: Url) -> Result<Stream, CallError> {
        let key = key();
        let request = self
            .client()
            .get(url)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", &key);
        let response = request.send().await.map_err(|error| self.failed(error))?;
        let code = response.status().as_u16();
        let accepted = response.headers().get("Sec-WebSocket-Accept").and_then(|value| value.to_str().ok());
        if response.status() != StatusCode::SWITCHING_PROTOCOLS || accepted != Some(accept(&key).as_str()) {
            return Err(CallError::Foreign { code });
        }
        let upgraded = response.upgrade().await.map_err(|error| self.failed(error))?;
        let limits = Limits::default().max_payload_len(Some(MAX_FRAME));
        Ok(ClientBuilder::new().limits(limits).take_over(upgraded))
    }
}

/// Returns a key: 16 bytes that differ each time. They protect caches only, and are no secret.
fn key() -> String {
    let random = || RandomState::new().build_hasher().finish();
    STANDARD.encode([random().to_be_bytes(), random().to_be_bytes()].concat())
}

/// Returns what the server must answer to a key.
fn accept(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(WEBSOCKET_GUID.as_bytes());
    STANDARD.encode(hash.digest().bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_rfc_6455() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_ne!(key(), key());
    }
}
