//! The program at the other end of the webhook: it signs what it sends, and answers permission requests.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use teamster_channel::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookSecret};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::client::{Client, Reply};
use crate::plan::one_in;

/// The secret of the webhook.
pub(crate) const SECRET: &str = "whsec_Y2hhb3MtY2hhb3MtY2hhb3MtY2hhb3M=";

/// The name of the channel.
pub(crate) const CHANNEL: &str = "webhook-chaos";

/// Returns the table of the configuration.
pub(crate) fn configuration(receiver: &str) -> String {
    format!(
        "[[serve.webhooks]]\nname = \"chaos\"\nurl = \"{receiver}\"\nallow_loopback = true\n\
         secrets = [\"{SECRET}\"]\ntimeout = \"1s\"\n"
    )
}

/// An author who must not answer permission requests.
pub(crate) const STRANGER: &str = "stranger";

/// A permission request, as the receiver has got it.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) chat: String,
    pub(crate) thread: String,
    pub(crate) id: String,
    pub(crate) allow: String,
    pub(crate) deny: String,
}

/// The ids of the permission requests that a client has allowed, or tried to allow: the answer may be lost with the gateway.
#[derive(Clone, Default)]
pub(crate) struct Approvals(Arc<Mutex<BTreeSet<String>>>);

impl Approvals {
    pub(crate) fn add(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
    }

    pub(crate) fn all(&self) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(crate) fn secret() -> WebhookSecret {
    WebhookSecret::parse(SECRET).expect("a secret")
}

/// Returns the time in seconds since 1970.
pub(crate) fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    i64::try_from(since.as_secs()).expect("a time before the end of i64")
}

/// Returns the author of all messages of a thread.
pub(crate) fn author(chat: &str, thread: &str) -> String {
    format!("author-of-{chat}-{thread}")
}

impl Client {
    /// Sends a request of the webhook until it is answered. Each attempt is signed afresh, with the same id.
    pub(crate) async fn post_signed(&self, id: &str, body: &Value) -> Reply {
        let text = body.to_string();
        let build = |http: &reqwest::Client, url: String| {
            let now = unix_seconds();
            http.post(url)
                .header(CONTENT_TYPE, "application/json")
                .header(ID_HEADER, id)
                .header(TIMESTAMP_HEADER, now)
                .header(SIGNATURE_HEADER, secret().sign(id, now, text.as_bytes()))
                .body(text.clone())
        };
        self.call("/v1/webhooks/chaos", build).await
    }

    /// Answers the permission requests that the receiver gets: some with yes and some with no, some as a stranger first.
    pub(crate) async fn press_buttons(self, mut prompts: UnboundedReceiver<Prompt>, approvals: Approvals) {
        while let Some(prompt) = prompts.recv().await {
            if one_in(3) {
                let reply = self.press(&prompt, &prompt.allow, STRANGER).await;
                let is_refused = matches!(reply.status, StatusCode::FORBIDDEN | StatusCode::CONFLICT);
                assert!(is_refused, "a stranger answers: {reply:?}");
            }
            let author = author(&prompt.chat, &prompt.thread);
            let token = if one_in(4) {
                &prompt.deny
            } else {
                approvals.add(&prompt.id);
                &prompt.allow
            };
            let reply = self.press(&prompt, token, &author).await;
            assert!(matches!(reply.status, StatusCode::OK | StatusCode::CONFLICT), "{reply:?}");
        }
    }

    async fn press(&self, prompt: &Prompt, token: &str, author: &str) -> Reply {
        let Prompt { chat, thread, id, .. } = prompt;
        let body = json!({
            "type": "answer", "chat": chat, "thread": thread, "token": token, "author": {"id": author},
        });
        self.post_signed(&format!("answer-{id}-{author}"), &body).await
    }
}
