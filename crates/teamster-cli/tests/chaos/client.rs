//! A client that repeats a call until the gateway has answered it, as a program at the other end of a network does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::gateway::{GatewayProcess, TOKEN};
use crate::sse::EventReader;
use crate::traffic::Address;
use crate::webhook;

/// The time in which a call is repeated.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    pub(crate) gateway: Arc<GatewayProcess>,
}

/// The answer to a call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
    /// How often the call was made.
    pub(crate) attempts: u32,
}

impl Client {
    pub(crate) fn new(gateway: &Arc<GatewayProcess>) -> Self {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(10)).build().expect("a client");
        Self { http, gateway: Arc::clone(gateway) }
    }

    /// Makes a call, and repeats it until there is an answer that is no failure of the gateway. `build` gets the URL of the
    /// path, which differs after each start.
    pub(crate) async fn call(
        &self,
        path: &str,
        build: impl Fn(&reqwest::Client, String) -> RequestBuilder + Sync,
    ) -> Reply {
        let limit = Instant::now() + PATIENCE;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let request = build(&self.http, format!("{}{path}", self.gateway.url()));
            if let Ok(response) = request.send().await {
                let status = response.status();
                let is_final = !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS;
                if is_final && let Ok(body) = response.json().await {
                    return Reply { status, body, attempts };
                }
            }
            assert!(Instant::now() < limit, "{path} is not answered:\n{}", self.gateway.log());
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let Reply { status, body, .. } = self.call(path, |http, url| http.get(url).bearer_auth(TOKEN)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.call(path, |http, url| http.post(url).bearer_auth(TOKEN).json(body)).await
    }

    /// Returns all items of a list.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        let separator = if path.contains('?') { '&' } else { '?' };
        loop {
            let mut page = self.get(&format!("{path}{separator}limit=500{cursor}")).await;
            items.append(page["items"].as_array_mut().expect("a list"));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    /// Returns all conversations by their addresses.
    pub(crate) async fn conversations(&self) -> BTreeMap<Address, Value> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let address = |conversation: &Value| {
            if conversation["channel"] == webhook::CHANNEL {
                Address::Webhook { chat: text(&conversation["chat"]), thread: text(&conversation["thread"]) }
            } else {
                Address::Http(text(&conversation["id"]))
            }
        };
        self.list("/v1/conversations").await.into_iter().map(|found| (address(&found), found)).collect()
    }

    /// Creates conversations. One half is in the HTTP API, the other half in chats of the webhook, two in each chat.
    pub(crate) async fn create_conversations(&self, count: usize) -> Vec<Address> {
        let mut addresses = Vec::new();
        for number in 0..count {
            if number % 2 == 0 {
                // A repeated call creates another conversation, which the test does not use.
                let Reply { status, body, .. } = self.post("/v1/conversations", &json!({})).await;
                assert_eq!(status, StatusCode::CREATED, "{body}");
                addresses.push(Address::Http(body["id"].as_str().expect("an id").to_owned()));
            } else {
                let thread = if number % 4 == 1 { String::new() } else { "thread".to_owned() };
                addresses.push(Address::Webhook { chat: format!("chat-{}", number / 4), thread });
            }
        }
        addresses
    }

    /// Waits until all turns have ended and all deliveries are sent.
    pub(crate) async fn wait_until_idle(&self, limit: Duration) {
        let limit = Instant::now() + limit;
        // One list, since a turn may wait and run again and again.
        self.wait_for_none("/v1/conversations", limit, |conversation| conversation["state"] != "idle").await;
        let is_open = |delivery: &Value| matches!(delivery["state"].as_str(), Some("pending" | "sending"));
        self.wait_for_none("/v1/deliveries", limit, is_open).await;
    }

    /// Waits until a list has no such item.
    async fn wait_for_none(&self, path: &str, limit: Instant, is_such: impl Fn(&Value) -> bool) {
        loop {
            let items = self.list(path).await;
            let Some(first) = items.iter().find(|item| is_such(item)) else { return };
            assert!(Instant::now() < limit, "{path} still has {first}\n{}", self.gateway.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the log of a conversation has an event of this type.
    pub(crate) async fn wait_for_event(&self, conversation: &str, kind: &str) {
        let path = format!("/v1/conversations/{conversation}/events?after=0");
        let mut found = Vec::new();
        let wait = async {
            let mut stream = self.stream(&path, None).await.expect("a stream");
            while found.last().is_none_or(|event: &Value| event["type"] != kind) {
                found.push(stream.next().await.expect("another event").data);
            }
        };
        let is_in_time = timeout(PATIENCE, wait).await.is_ok();
        assert!(is_in_time, "there is no event {kind:?}: {found:#?}\n{}", self.gateway.log());
    }

    /// Opens an event stream. `None` if the gateway does not answer now.
    pub(crate) async fn stream(&self, path: &str, last: Option<&str>) -> Option<EventReader> {
        let mut request = self.http.get(format!("{}{path}", self.gateway.url())).bearer_auth(TOKEN);
        request = request.timeout(Duration::from_mins(10));
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.ok()?;
        let status = response.status();
        if status.is_server_error() {
            return None;
        }
        assert_eq!(status, StatusCode::OK, "{path} after {last:?}");
        Some(EventReader::new(response))
    }

    /// Returns the whole log of a conversation, read as an event stream up to its last event.
    pub(crate) async fn log(&self, conversation: &str) -> Vec<Value> {
        let last = self.get(&format!("/v1/conversations/{conversation}")).await["lastSeq"].as_u64().expect("a number");
        let mut events = Vec::new();
        let path = format!("/v1/conversations/{conversation}/events?after=0");
        let mut stream = self.stream(&path, None).await.expect("a stream");
        // Each event of the log is there already.
        while events.last().map_or(0, |event: &Value| event["seq"].as_u64().expect("a number")) < last {
            events.push(stream.next().await.expect("another event").data);
        }
        events
    }
}
