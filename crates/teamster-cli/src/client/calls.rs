//! The calls of the API that several clients use.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use teamster::Event;
use tokio::time::{Instant, sleep};

use super::connection::{ClientError, Connection};

/// The first delay before a call is repeated. It doubles up to the last.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LAST_DELAY: Duration = Duration::from_secs(4);

/// The number of open requests that are read. An agent that waits for more of them is not usual.
const OPEN_REQUESTS: u32 = 100;

/// Parses the id of a conversation.
pub(super) fn whole_id(text: &str) -> Result<uuid::Uuid, String> {
    text.parse().map_err(|_| "give the whole id, as teamster conversations prints it".to_owned())
}

/// A conversation.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Conversation {
    pub(crate) id: String,
    pub(crate) agent: String,
    pub(crate) title: Option<String>,
    /// The model, the permission mode and the working directory, if they were selected for this conversation.
    pub(crate) model: Option<String>,
    pub(crate) permission: Option<String>,
    pub(crate) directory: Option<String>,
    /// The numbers of its last event, and of the oldest one that can be read.
    pub(crate) last_seq: u64,
    pub(crate) oldest_seq: u64,
    pub(crate) forked_from: Option<ForkOrigin>,
}

/// The origin of a fork.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct ForkOrigin {
    /// The last event that was copied.
    pub(crate) seq: u64,
}

/// The fields of a new conversation. Absent ones are selected by the gateway's configuration.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct NewConversation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permission: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<String>,
}

/// Whether a message goes into the running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageMode {
    Queue,
    Steer,
}

/// An accepted message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accepted {
    pub(crate) message_id: String,
    pub(crate) turn_id: String,
    pub(crate) seq: u64,
}

/// The answer to a permission request or a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub(crate) enum RequestAnswer {
    Allow {
        /// The answers to questions, by their ids.
        #[serde(skip_serializing_if = "Option::is_none")]
        answers: Option<BTreeMap<String, Vec<String>>>,
    },
    AllowAlways,
    Deny {
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

impl Connection {
    pub(crate) async fn conversation(&self, id: &str) -> Result<Conversation, ClientError> {
        match self.get(&format!("v1/conversations/{id}")).await {
            Err(ClientError::Refused { status: 404, .. }) => Err(ClientError::NoConversation { id: id.to_owned() }),
            other => other,
        }
    }

    /// Returns the open permission requests and questions of a conversation, as events.
    pub(crate) async fn open_requests(&self, conversation: &str) -> Result<Vec<Event>, ClientError> {
        #[derive(Deserialize)]
        struct Page {
            items: Vec<Item>,
        }
        #[derive(Deserialize)]
        struct Item {
            request: Event,
        }
        let path = format!("v1/permission-requests?state=open&conversationId={conversation}&limit={OPEN_REQUESTS}");
        let Page { items } = self.get(&path).await?;
        Ok(items.into_iter().map(|item| item.request).collect())
    }

    pub(crate) async fn create_conversation(&self, new: &NewConversation) -> Result<Conversation, ClientError> {
        self.call(Method::POST, "v1/conversations", Some(&json!(new)), None).await
    }

    /// Changes fields of a conversation, from its next turn on.
    pub(crate) async fn change_conversation(&self, id: &str, change: &Value) -> Result<Conversation, ClientError> {
        self.call(Method::PATCH, &format!("v1/conversations/{id}"), Some(change), None).await
    }

    /// Sends a message until the gateway has confirmed it, or until its time limit. The idempotency key prevents
    /// a second turn.
    ///
    /// # Errors
    /// The gateway cannot be reached, or refuses the message.
    pub(crate) async fn send_message(
        &self,
        conversation: &str,
        (text, mode): (&str, MessageMode),
        key: &str,
        time_limit: Duration,
    ) -> Result<Accepted, ClientError> {
        let path = format!("v1/conversations/{conversation}/messages");
        let body = json!({ "text": text, "mode": mode });
        self.post(&path, Some(&body), Some(key), time_limit).await
    }

    /// Requests the end of a turn.
    pub(crate) async fn abort_turn(&self, turn: &str, time_limit: Duration) -> Result<(), ClientError> {
        let path = format!("v1/turns/{turn}/abort");
        self.post::<IgnoredAny>(&path, None, None, time_limit).await?;
        Ok(())
    }

    /// Answers a permission request or a question. A second answer is refused.
    pub(crate) async fn answer_request(
        &self,
        id: &str,
        answer: &RequestAnswer,
        time_limit: Duration,
    ) -> Result<(), ClientError> {
        let path = format!("v1/permission-requests/{id}/answer");
        let body = json!(answer);
        self.post::<IgnoredAny>(&path, Some(&body), None, time_limit).await?;
        Ok(())
    }

    /// Calls the API, and repeats a call that failed for now until its time limit.
    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
        time_limit: Duration,
    ) -> Result<T, ClientError> {
        let started = Instant::now();
        let mut delay = FIRST_DELAY;
        loop {
            match self.call(Method::POST, path, body, key).await {
                Err(error) if error.is_transient() && started.elapsed() + delay <= time_limit => {
                    sleep(delay).await;
                    delay = (delay * 2).min(LAST_DELAY);
                }
                other => return other,
            }
        }
    }
}

/// Returns a directory for the gateway on this machine.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn directory_of(path: &Path) -> Result<String, ClientError> {
    let absolute = path
        .canonicalize()
        .map_err(|error| ClientError::Usage(format!("cannot use the directory {}: {error}", path.to_string_lossy())))?;
    Ok(absolute.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_written_as_the_api_reads_them() {
        for (answer, expected) in [
            (RequestAnswer::Allow { answers: None }, json!({"decision": "allow"})),
            (RequestAnswer::AllowAlways, json!({"decision": "allow_always"})),
            (RequestAnswer::Deny { message: Some("no".to_owned()) }, json!({"decision": "deny", "message": "no"})),
            (
                RequestAnswer::Allow { answers: Some([("q".to_owned(), vec!["Red".to_owned()])].into()) },
                json!({"decision": "allow", "answers": {"q": ["Red"]}}),
            ),
        ] {
            assert_eq!(json!(answer), expected);
        }
    }
}
