//! A client that repeats a call until the gateway has answered it, as a program at the other end of a network does.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::gateway::{GatewayProcess, TOKEN};
use crate::plan::random;

/// The time in which a call is repeated.
const PATIENCE: Duration = Duration::from_mins(2);

/// A message that the gateway has accepted.
#[derive(Clone, Debug)]
pub(crate) struct SentMessage {
    pub(crate) conversation: String,
    pub(crate) turn: String,
    pub(crate) text: String,
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    gateway: Arc<GatewayProcess>,
}

impl Client {
    pub(crate) fn new(gateway: &Arc<GatewayProcess>) -> Self {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(10)).build().expect("a client");
        Self { http, gateway: Arc::clone(gateway) }
    }

    /// Makes a call, and repeats it until there is an answer that is no failure of the gateway.
    async fn call(&self, method: Method, path: &str, key: Option<&str>, body: Option<&Value>) -> (StatusCode, Value) {
        let limit = Instant::now() + PATIENCE;
        loop {
            let url = self.gateway.url.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut request = self.http.request(method.clone(), format!("{url}{path}")).bearer_auth(TOKEN);
            if let Some(key) = key {
                request = request.header("Idempotency-Key", key);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            if let Ok(response) = request.send().await {
                let status = response.status();
                let is_final = !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS;
                if is_final && let Ok(body) = response.json().await {
                    return (status, body);
                }
            }
            assert!(Instant::now() < limit, "{path} is not answered:\n{}", self.gateway.log());
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, None, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    pub(crate) async fn create_conversations(&self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for _ in 0..count {
            // A repeated call creates another conversation, which stays unused.
            let (status, body) = self.call(Method::POST, "/v1/conversations", None, Some(&json!({}))).await;
            assert_eq!(status, StatusCode::CREATED, "{body}");
            ids.push(body["id"].as_str().expect("an id").to_owned());
        }
        ids
    }

    /// Sends messages to random conversations, four at a time; those of one conversation one after another.
    pub(crate) async fn send_all(&self, conversations: &[String], count: usize) -> Vec<SentMessage> {
        let mut tasks = Vec::new();
        for worker in 0..4 {
            let mine: Vec<_> = conversations.iter().skip(worker).step_by(4).cloned().collect();
            if mine.is_empty() {
                continue;
            }
            let (client, share) = (self.clone(), count / 4.min(conversations.len()));
            tasks.push(tokio::spawn(async move {
                let mut sent = Vec::new();
                for number in 0..share {
                    let at = usize::try_from(random(mine.len() as u64)).expect("an index");
                    sent.push(client.send(&mine[at], &format!("message {worker}-{number}")).await);
                }
                sent
            }));
        }
        let mut sent = Vec::new();
        for task in tasks {
            sent.extend(task.await.expect("all are sent"));
        }
        sent
    }

    async fn send(&self, conversation: &str, text: &str) -> SentMessage {
        let path = format!("/v1/conversations/{conversation}/messages");
        let key = text.replace(' ', "-");
        let body = json!({"text": text});
        let (status, accepted) = self.call(Method::POST, &path, Some(&key), Some(&body)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{accepted}");
        let turn = accepted["turnId"].as_str().expect("a turn").to_owned();
        if random(8) == 0 {
            let (_, again) = self.call(Method::POST, &path, Some(&key), Some(&body)).await;
            assert_eq!(again, accepted, "a repeated call has the same answer");
        }
        SentMessage { conversation: conversation.to_owned(), turn, text: text.to_owned() }
    }

    /// Answers permission requests, some with yes and some with no, until `over`. Returns the ids of those it allowed.
    pub(crate) async fn approve_until(self, over: Arc<AtomicBool>) -> BTreeSet<String> {
        let mut allowed = BTreeSet::new();
        while !over.load(Ordering::Relaxed) {
            let open = self.get("/v1/permission-requests?state=open").await;
            for request in open["items"].as_array().expect("a list") {
                let id = request["id"].as_str().expect("an id");
                let decision = if random(4) == 0 { "deny" } else { "allow" };
                // The answer of the gateway may be lost with it, so an attempt counts.
                if decision == "allow" {
                    allowed.insert(id.to_owned());
                }
                let path = format!("/v1/permission-requests/{id}/answer");
                let (status, body) = self.call(Method::POST, &path, None, Some(&json!({"decision": decision}))).await;
                assert!(status == StatusCode::OK || status == StatusCode::CONFLICT, "{status} {body}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        allowed
    }

    pub(crate) async fn wait_until_ended(&self, sent: &[SentMessage], limit: Duration) {
        let limit = Instant::now() + limit;
        for message in sent {
            loop {
                let turn = self.get(&format!("/v1/turns/{}?wait=5", message.turn)).await;
                if !matches!(turn["state"].as_str(), Some("queued" | "running")) {
                    break;
                }
                assert!(Instant::now() < limit, "a turn does not end: {turn}\n{}", self.gateway.log());
            }
        }
    }

    /// Returns the whole log of a conversation, read as an event stream up to its last event.
    pub(crate) async fn log(&self, conversation: &str) -> Vec<Value> {
        let last = self.get(&format!("/v1/conversations/{conversation}")).await["lastSeq"].as_u64().expect("a number");
        let mut events = Vec::new();
        if last == 0 {
            return events;
        }
        let url = self.gateway.url.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let url = format!("{url}/v1/conversations/{conversation}/events?after=0");
        let request = self.http.get(url).bearer_auth(TOKEN).timeout(Duration::from_mins(1));
        let mut response = request.send().await.expect("a stream");
        let mut text = String::new();
        while let Some(chunk) = response.chunk().await.expect("more of the stream") {
            text.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
            while let Some((event, rest)) = text.split_once("\n\n") {
                if let Some(data) =
                    event.lines().find_map(|line| line.strip_prefix("data: ").or(line.strip_prefix("data:")))
                {
                    events.push(serde_json::from_str(data).expect("JSON"));
                }
                text = rest.to_owned();
            }
            if events.last().is_some_and(|event: &Value| event["seq"].as_u64() >= Some(last)) {
                break;
            }
        }
        events
    }
}
