//! Sends messages to conversations, those of one conversation one after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::client::{Client, Reply};
use crate::gateway::TOKEN;
use crate::plan::{one_in, random_index};
use crate::webhook;

/// The number of tasks that send messages.
const SENDERS: usize = 4;

/// The address of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    /// In the HTTP API, with this id.
    Http(String),
    /// In a chat of the webhook.
    Webhook { chat: String, thread: String },
}

/// A message that the gateway has accepted.
#[derive(Clone, Debug)]
pub(crate) struct SentMessage {
    pub(crate) address: Address,
    /// Its turn. `None`: the answer of the webhook with its turn was lost.
    pub(crate) turn: Option<String>,
    pub(crate) text: String,
    /// The text that replaces the first one, if the edit came in time.
    pub(crate) edited: Option<String>,
    /// Whether the operator has aborted its turn, or tried to.
    pub(crate) is_aborted: bool,
    /// Whether it may go into the running turn.
    pub(crate) is_steered: bool,
}

impl Client {
    /// Sends so many messages to random addresses. Each one takes a permit, so that the caller sets the pace.
    pub(crate) async fn send_all(
        &self,
        addresses: &[Address],
        count: usize,
        permits: &Arc<Semaphore>,
    ) -> Vec<SentMessage> {
        let senders = SENDERS.min(addresses.len());
        let mut tasks = Vec::new();
        for sender in 0..senders {
            let own: Vec<_> = addresses.iter().skip(sender).step_by(senders).cloned().collect();
            let (client, permits) = (self.clone(), Arc::clone(permits));
            tasks.push(tokio::spawn(async move {
                let mut sent = Vec::new();
                for number in 0..count / senders {
                    permits.acquire().await.expect("it is not closed").forget();
                    let address = own[random_index(own.len())].clone();
                    sent.push(client.send(address, &format!("message {sender}-{number}"), true).await);
                }
                sent
            }));
        }
        join(tasks).await
    }

    /// Sends messages to each address whenever fewer than two wait there, until `over`.
    pub(crate) async fn send_until(&self, addresses: &[Address], over: &Arc<AtomicBool>) -> Vec<SentMessage> {
        let mut tasks = Vec::new();
        for (number, address) in addresses.iter().cloned().enumerate() {
            let (client, over) = (self.clone(), Arc::clone(over));
            tasks.push(tokio::spawn(async move {
                let mut sent = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let conversations = client.conversations().await;
                    let waiting = conversations.get(&address).and_then(|found| found["queued"].as_u64());
                    if waiting.unwrap_or_default() < 2 {
                        let text = format!("message {number}-{}", sent.len());
                        sent.push(client.send(address.clone(), &text, false).await);
                    }
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
                sent
            }));
        }
        join(tasks).await
    }

    /// Sends a message. Some are sent twice, and `with_changes` some are edited or aborted.
    pub(crate) async fn send(&self, address: Address, text: &str, with_changes: bool) -> SentMessage {
        match &address {
            Address::Http(id) => {
                let is_steered = one_in(3);
                let turn = self.send_by_http(id, text, if is_steered { "steer" } else { "queue" }).await;
                // The abort of a message that went into another turn would abort that turn.
                let is_aborted = with_changes && !is_steered && one_in(12);
                if is_aborted {
                    let Reply { status, body, .. } = self.post(&format!("/v1/turns/{turn}/abort"), &json!({})).await;
                    assert!(matches!(status, StatusCode::ACCEPTED | StatusCode::CONFLICT), "{status} {body}");
                }
                SentMessage { address, turn: Some(turn), text: text.to_owned(), edited: None, is_aborted, is_steered }
            }
            Address::Webhook { chat, thread } => {
                let turn = self.send_by_webhook(chat, thread, text).await;
                let edited = (with_changes && one_in(12)).then(|| format!("{text}, edited"));
                if let Some(edited) = &edited {
                    let body = json!({"type": "edit", "id": webhook_id(text), "text": edited});
                    let Reply { status, body, .. } =
                        self.post_signed(&format!("edit-{}", webhook_id(text)), &body).await;
                    // The turn may have started before.
                    assert!(matches!(status, StatusCode::OK | StatusCode::CONFLICT), "{status} {body}");
                }
                let (is_aborted, is_steered) = (false, false);
                SentMessage { address, turn, text: text.to_owned(), edited, is_aborted, is_steered }
            }
        }
    }

    /// Sends a message by HTTP, and returns its turn.
    async fn send_by_http(&self, conversation: &str, text: &str, mode: &str) -> String {
        let path = format!("/v1/conversations/{conversation}/messages");
        let (key, body) = (text.replace(' ', "-"), json!({"text": text, "mode": mode}));
        let send = || {
            self.call(&path, |http, url| http.post(url).bearer_auth(TOKEN).header("Idempotency-Key", &key).json(&body))
        };
        let (first, again) = match random_index(8) {
            0 => {
                let first = send().await;
                (first, Some(send().await))
            }
            1 => {
                let (first, again) = tokio::join!(send(), send());
                (first, Some(again))
            }
            _ => (send().await, None),
        };
        assert_eq!(first.status, StatusCode::ACCEPTED, "{first:?}");
        if let Some(again) = again {
            assert_eq!(again.body, first.body, "a repeated call has the same answer");
        }
        text_of(&first.body["turnId"])
    }

    /// Sends a message by the webhook, and returns its turn unless that answer was lost.
    async fn send_by_webhook(&self, chat: &str, thread: &str, text: &str) -> Option<String> {
        let id = webhook_id(text);
        let author = json!({"id": webhook::author(chat, thread)});
        let body = json!({"chat": chat, "thread": thread, "author": author, "text": text});
        let replies = match random_index(8) {
            0 => vec![self.post_signed(&id, &body).await, self.post_signed(&id, &body).await],
            1 => {
                let (first, second) = tokio::join!(self.post_signed(&id, &body), self.post_signed(&id, &body));
                vec![first, second]
            }
            _ => vec![self.post_signed(&id, &body).await],
        };
        let attempts: u32 = replies.iter().map(|reply| reply.attempts).sum();
        let is_valid = |reply: &Reply| match reply.status {
            StatusCode::ACCEPTED => reply.body["status"] == "accepted",
            // Only a message that was sent before can be a duplicate.
            StatusCode::OK => reply.body["status"] == "duplicate" && attempts > 1,
            _ => false,
        };
        assert!(replies.iter().all(is_valid), "{replies:?}");
        let accepted: Vec<_> = replies.iter().filter(|reply| reply.status == StatusCode::ACCEPTED).collect();
        assert!(accepted.len() <= 1, "a message is accepted twice: {replies:?}");
        accepted.first().map(|reply| text_of(&reply.body["turnId"]))
    }
}

async fn join(tasks: Vec<tokio::task::JoinHandle<Vec<SentMessage>>>) -> Vec<SentMessage> {
    let mut sent = Vec::new();
    for task in tasks {
        sent.extend(task.await.expect("all messages are accepted"));
    }
    sent
}

fn webhook_id(text: &str) -> String {
    text.replace(' ', "-")
}

fn text_of(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
