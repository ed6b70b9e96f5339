//! The search for a message whose outcome is unknown.
//!
//! Slack has no key that recognizes a repeat: `client_msg_id` is for its own clients only. But a message has metadata, which the
//! history returns. Each new message contains the key of its part there.

use std::borrow::Cow;

use teamster_channel::{Content, Delivered, Operation, Outgoing, SendError, SendOutcome};

use crate::api::Parameters;
use crate::error::CallError;
use crate::send::{METADATA, SEND_TIMEOUT};
use crate::service::SlackChannel;
use crate::types::{History, StoredMessage};

/// The number of messages of a page.
const PAGE: &str = "100";

/// The largest number of pages. If the chat has more new messages, the outcome stays unknown.
const MAX_PAGES: usize = 10;

/// How much the clocks may differ, in seconds.
const CLOCK_DIFFERENCE: i64 = 300;

impl SlackChannel {
    /// Looks for a message of this part. `None`: files have no metadata, or the token lacks a scope.
    pub(crate) async fn find_part(&self, outgoing: &Outgoing) -> Option<SendOutcome> {
        if outgoing.operation != Operation::New || matches!(outgoing.content, Content::File(_)) {
            return None;
        }
        match self.search(outgoing).await {
            Ok(Some(ts)) => Some(SendOutcome::Sent(Delivered { message_id: Some(ts) })),
            Ok(None) => Some(SendOutcome::NotSent(SendError::later("Slack has no such message"))),
            Err(error) if error.is_final() => None,
            Err(CallError::NotSent(reason)) => {
                Some(SendOutcome::NotSent(SendError::Unavailable { reason, after: None }))
            }
            Err(error) => Some(SendOutcome::Unknown(error.to_string())),
        }
    }

    /// Returns the time of the message.
    async fn search(&self, outgoing: &Outgoing) -> Result<Option<String>, CallError> {
        let nonce = outgoing.nonce();
        let thread = &outgoing.address.thread;
        let oldest = (outgoing.created_at_ms / 1_000).saturating_sub(CLOCK_DIFFERENCE).max(0);
        let mut cursor = String::new();
        for _ in 0..MAX_PAGES {
            let mut parameters: Parameters<'_> = vec![
                ("channel", Cow::Borrowed(outgoing.address.chat.as_str())),
                ("oldest", oldest.to_string().into()),
                ("limit", Cow::Borrowed(PAGE)),
                ("include_all_metadata", Cow::Borrowed("true")),
            ];
            if !cursor.is_empty() {
                parameters.push(("cursor", Cow::Owned(cursor)));
            }
            let method = if thread.is_empty() { "conversations.history" } else { "conversations.replies" };
            if !thread.is_empty() {
                parameters.push(("ts", Cow::Borrowed(thread.as_str())));
            }
            let page: History = self.api().call(method, &parameters, SEND_TIMEOUT).await?;
            if let Some(found) = page.messages.iter().find(|message| has_key(message, &nonce)) {
                return Ok(Some(found.ts.clone()));
            }
            cursor = page.response_metadata.next_cursor;
            if !page.has_more || cursor.is_empty() {
                return Ok(None);
            }
        }
        Err(CallError::Unknown("the chat has too many new messages to find one".to_owned()))
    }
}

fn has_key(message: &StoredMessage, nonce: &str) -> bool {
    message.metadata.as_ref().is_some_and(|metadata| {
        metadata.event_type == METADATA && metadata.event_payload.get("key").and_then(|key| key.as_str()) == Some(nonce)
    })
}
