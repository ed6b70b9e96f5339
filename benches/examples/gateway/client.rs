//! A client of the gateway's API.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::process::{GatewayProcess, TOKEN};

/// The time limit of each wait.
const LIMIT: Duration = Duration::from_mins(2);

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
}

/// The events of a conversation, as bytes of `text/event-stream`.
pub(crate) struct Events {
    response: reqwest::Response,
    buffer: Vec<u8>,
}

/// An event.
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) kind: String,
}

impl Client {
    pub(crate) fn new(gateway: &GatewayProcess) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { http, url: gateway.url.clone() }
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.url)).bearer_auth(TOKEN).json(body);
        let response = request.send().await.expect("an answer");
        let status = response.status();
        let body = response.json().await.expect("a document");
        assert!(status.is_success(), "{status}: {body}");
        body
    }

    pub(crate) async fn conversation(&self) -> String {
        let created = self.post("/v1/conversations", &json!({})).await;
        created["id"].as_str().expect("an id").to_owned()
    }

    /// Sends a message, and returns the id of its turn.
    pub(crate) async fn send(&self, conversation: &str, text: &str) -> String {
        let path = format!("/v1/conversations/{conversation}/messages");
        let accepted = self.post(&path, &json!({ "text": text })).await;
        accepted["turnId"].as_str().expect("a turn").to_owned()
    }

    /// Waits until a turn has ended.
    pub(crate) async fn wait(&self, turn: &str) {
        let limit = Instant::now() + LIMIT;
        while Instant::now() < limit {
            let request = self.http.get(format!("{}/v1/turns/{turn}?wait=10", self.url)).bearer_auth(TOKEN);
            let turn: Value = request.send().await.expect("an answer").json().await.expect("a document");
            match turn["state"].as_str() {
                Some("done") => return,
                Some("queued" | "running") => {}
                _ => panic!("the turn has failed: {turn}"),
            }
        }
        panic!("the turn does not end");
    }

    pub(crate) async fn events(&self, conversation: &str, after: u64) -> Events {
        let url = format!("{}/v1/conversations/{conversation}/events?after={after}", self.url);
        let response = self.http.get(url).bearer_auth(TOKEN).send().await.expect("an answer");
        assert!(response.status().is_success(), "{}", response.status());
        Events { response, buffer: Vec::new() }
    }

    /// Makes calls at the same time, `width` at once.
    pub(crate) async fn each<T>(width: usize, calls: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
        futures::stream::iter(calls).buffer_unordered(width).collect().await
    }
}

impl Events {
    /// Returns the next event.
    pub(crate) async fn next(&mut self) -> Event {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|bytes| bytes == b"\n\n") {
                let frame: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let frame = String::from_utf8_lossy(&frame);
                let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                if let (Some(seq), Some(kind)) = (field("id:"), field("event:")) {
                    return Event { seq: seq.parse().expect("a number"), kind: kind.to_owned() };
                }
                continue;
            }
            let chunk = tokio::time::timeout(LIMIT, self.response.chunk()).await.expect("an event in time");
            self.buffer.extend(chunk.expect("the stream").expect("the stream has not ended"));
        }
    }

    /// Reads up to an event of this type. Returns the number of events, of which none may be missing.
    pub(crate) async fn until(&mut self, kind: &str, mut last: u64) -> u64 {
        let mut count = 0;
        loop {
            let event = self.next().await;
            assert_eq!(event.seq, last + 1, "an event is missing");
            (last, count) = (event.seq, count + 1);
            if event.kind == kind {
                return count;
            }
        }
    }
}
