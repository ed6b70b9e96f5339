//! The body of a call: JSON, or a form with JSON and files.

use axum::body::Body;
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::header;
use serde_json::Value;

/// The largest body.
pub(super) const MAX_BODY: usize = 64 << 20;

/// A file in a call.
#[derive(Clone, Debug, Default)]
pub(super) struct SentFile {
    pub(super) name: String,
    pub(super) media_type: String,
    pub(super) bytes: Vec<u8>,
}

/// What a call sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    pub(super) json: Value,
    pub(super) files: Vec<SentFile>,
    pub(super) query: Vec<(String, String)>,
}

impl Sent {
    /// Reads a request. The error is a text for the client.
    pub(super) async fn read(request: Request<Body>) -> Result<Self, String> {
        let query = request.uri().query().unwrap_or_default().split('&');
        let query =
            query.filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut sent = Self { query: query.collect(), ..Self::default() };
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("multipart/") {
            sent.add_multipart(request).await?;
            return Ok(sent);
        }
        let body = axum::body::to_bytes(request.into_body(), MAX_BODY).await.map_err(|error| error.to_string())?;
        if !body.is_empty() {
            sent.json = serde_json::from_slice(&body)
                .map_err(|error| format!("The request body contains invalid JSON: {error}"))?;
        }
        Ok(sent)
    }

    async fn add_multipart(&mut self, request: Request<Body>) -> Result<(), String> {
        let mut parts = Multipart::from_request(request, &()).await.map_err(|error| error.to_string())?;
        while let Some(part) = parts.next_field().await.map_err(|error| error.to_string())? {
            let name = part.name().unwrap_or_default().to_owned();
            let file_name = part.file_name().map(str::to_owned);
            let media_type = part.content_type().unwrap_or("application/octet-stream").to_owned();
            let bytes = part.bytes().await.map_err(|error| error.to_string())?;
            if name == "payload_json" {
                self.json = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
            } else if let Some(file_name) = file_name {
                self.files.push(SentFile { name: file_name, media_type, bytes: bytes.to_vec() });
            }
        }
        Ok(())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.json.get(name)?.as_str()
    }

    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
