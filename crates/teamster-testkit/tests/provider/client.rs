//! A client of the Messages API that shows every frame and every error unchanged.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use teamster_testkit::provider::Provider;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Longer than any step takes: an awaited event has happened by then, or never will.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// A response whose body has not been read. The connection closes when it is dropped.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    unread: String,
    connection: JoinHandle<()>,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Sends a streaming request.
pub(crate) async fn ask(provider: &Provider, messages: Value) -> Result<Answer> {
    post(provider, &request(messages, true)).await
}

/// Sends a request without streaming, and returns the message.
pub(crate) async fn ask_whole(provider: &Provider, messages: Value) -> Result<Value> {
    let answer = post(provider, &request(messages, false)).await?;
    answer.json().await
}

pub(crate) fn request(messages: Value, stream: bool) -> Value {
    let messages = match messages {
        Value::String(prompt) => json!([{"role": "user", "content": prompt}]),
        messages => messages,
    };
    json!({"model": "claude-test", "max_tokens": 100, "stream": stream, "messages": messages})
}

pub(crate) async fn post(provider: &Provider, body: &Value) -> Result<Answer> {
    send(provider, "POST", "/v1/messages?beta=true", body.to_string()).await
}

pub(crate) async fn send(provider: &Provider, method: &str, path: &str, body: String) -> Result<Answer> {
    let url = provider.base_url();
    let address = url.strip_prefix("http://").context("an http URL")?;
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Errors of the connection also appear when the body is read.
    let connection = tokio::spawn(async { drop(connection.await) });
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", address)
        .header("X-Api-Key", "sk-test")
        .body(Full::new(Bytes::from(body)))?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    Ok(Answer { status: head.status, headers: head.headers, body, unread: String::new(), connection })
}

impl Answer {
    /// Returns the next event of the stream, or `None` at its proper end.
    pub(crate) async fn next_event(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.unread.find("\n\n") {
                let event: String = self.unread.drain(..end + 2).collect();
                return parse(event.trim_end()).map(Some);
            }
            match self.body.frame().await.transpose()? {
                Some(frame) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.unread.push_str(std::str::from_utf8(&data)?);
                }
                None if self.unread.is_empty() => return Ok(None),
                None => bail!("the stream ends within an event"),
            }
        }
    }

    /// Reads events until this number of deltas, and returns their texts.
    pub(crate) async fn read_deltas(&mut self, count: usize) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        while texts.len() < count {
            let event = self.next_event().await?.context("an event")?;
            texts.extend(delta_text(&event));
        }
        Ok(texts)
    }

    /// Returns all events, and whether the connection broke before the proper end of the stream.
    pub(crate) async fn events(mut self) -> (Vec<Value>, Ending) {
        let mut events = Vec::new();
        loop {
            match self.next_event().await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => return (events, Ending::Proper),
                Err(_) => return (events, Ending::Broken),
            }
        }
    }

    /// Returns the text received, and whether the stream reached its proper end.
    pub(crate) async fn text(mut self) -> (String, bool) {
        let mut text = String::new();
        while let Some(frame) = self.body.frame().await {
            let Ok(frame) = frame else { return (text, false) };
            text.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap_or_default()));
        }
        (text, true)
    }

    pub(crate) async fn json(self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.bytes().await?)?)
    }

    pub(crate) async fn bytes(mut self) -> Result<Bytes> {
        Ok((&mut self.body).collect().await?.to_bytes())
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Ending {
    Proper,
    Broken,
}

fn parse(event: &str) -> Result<Value> {
    let (name, data) = event.split_once('\n').context("two lines")?;
    let name = name.strip_prefix("event: ").context("the event's name")?;
    let data: Value = serde_json::from_str(data.strip_prefix("data: ").context("its data")?)?;
    let kind = data.get("type").and_then(Value::as_str);
    anyhow::ensure!(kind == Some(name), "event {name} contains {data}");
    Ok(data)
}

/// Returns the text that a delta of any kind adds.
fn delta_text(event: &Value) -> Option<String> {
    let delta = event.get("delta").filter(|_| event["type"] == "content_block_delta")?;
    ["text", "thinking", "partial_json", "signature"].iter().find_map(|field| delta[field].as_str()).map(str::to_owned)
}

/// Returns the types of the events, with consecutive duplicates removed.
pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    types.dedup();
    types
}

/// Returns the texts of a stream's deltas.
pub(crate) fn deltas(events: &[Value]) -> Vec<String> {
    events.iter().filter_map(delta_text).collect()
}
