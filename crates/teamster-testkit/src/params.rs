//! The parameters of a call: from the query, a form or JSON: web APIs accept each of them.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::header;
use serde_json::{Map, Value};

/// The largest body.
pub(crate) const MAX_BODY: usize = 64 << 20;

/// A file in a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentFile {
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) bytes: Vec<u8>,
}

/// The parameters of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    pub(crate) values: Map<String, Value>,
    pub(crate) files: BTreeMap<String, SentFile>,
}

impl Params {
    /// Reads the parameters of a request. The error is a text for the client.
    pub(crate) async fn read(request: Request<Body>) -> Result<Self, String> {
        let mut params = Self::default();
        params.add_form(request.uri().query().unwrap_or_default());
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("multipart/") {
            params.add_multipart(request).await?;
            return Ok(params);
        }
        let is_json = kind.starts_with("application/json");
        let body = axum::body::to_bytes(request.into_body(), MAX_BODY).await.map_err(|error| error.to_string())?;
        if is_json {
            match serde_json::from_slice(&body) {
                Ok(Value::Object(values)) => params.values.extend(values),
                _ => return Err("Bad Request: can't parse JSON object".to_owned()),
            }
        } else {
            params.add_form(&String::from_utf8_lossy(&body));
        }
        Ok(params)
    }

    fn add_form(&mut self, text: &str) {
        for (name, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
            self.values.insert(decoded(name), Value::String(decoded(value)));
        }
    }

    async fn add_multipart(&mut self, request: Request<Body>) -> Result<(), String> {
        let mut parts = Multipart::from_request(request, &()).await.map_err(|error| error.to_string())?;
        while let Some(part) = parts.next_field().await.map_err(|error| error.to_string())? {
            let name = part.name().unwrap_or_default().to_owned();
            let file_name = part.file_name().map(str::to_owned);
            let media_type = part.content_type().unwrap_or("application/octet-stream").to_owned();
            let bytes = part.bytes().await.map_err(|error| error.to_string())?;
            match file_name {
                Some(file_name) => {
                    self.files.insert(name, SentFile { name: file_name, media_type, bytes: bytes.to_vec() });
                }
                None => {
                    self.values.insert(name, Value::String(String::from_utf8_lossy(&bytes).into_owned()));
                }
            }
        }
        Ok(())
    }

    /// Returns a number, which a form has as a text.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        match self.values.get(name)? {
            Value::String(text) => text.parse().ok(),
            value => value.as_i64(),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// Returns an object or a list, which a form has as JSON in a text.
    pub(crate) fn json(&self, name: &str) -> Option<Value> {
        match self.values.get(name)? {
            Value::String(text) => serde_json::from_str(text).ok(),
            value => Some(value.clone()),
        }
    }
}

/// Decodes a part of a form.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let pair: Vec<u8> = rest.by_ref().take(2).collect();
                let number = std::str::from_utf8(&pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
                bytes.extend(number);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_numbers_and_json_in_texts() {
        let mut params = Params::default();
        params.add_form("chat_id=-5&text=a+b%21%F0%9F%98%80&reply_markup=%7B%22a%22%3A1%7D");
        assert_eq!((params.number("chat_id"), params.text("text")), (Some(-5), Some("a b!😀")));
        assert_eq!(params.json("reply_markup"), Some(serde_json::json!({"a": 1})));
    }
}
