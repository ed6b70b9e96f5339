//! What is sent to a hook.

use teamster_store::Timestamp;
use uuid::Uuid;

use super::error::CallError;
use super::event::HookEvent;
use crate::event::rfc3339;

/// The size of an answer, besides a rewritten text.
const ANSWER_BYTES: usize = 64 << 10;

/// The largest growth of a text by its encoding in JSON (`\u0000`).
const JSON_GROWTH: usize = 6;

/// What is sent to a hook.
#[derive(Debug)]
pub(super) struct Payload {
    /// The id of the call.
    pub(super) id: String,
    /// The event, as JSON.
    pub(super) body: Vec<u8>,
    /// When it is sent, in seconds since 1970.
    pub(super) timestamp: i64,
    /// The name of the event.
    pub(super) event: &'static str,
    /// The largest answer.
    pub(super) max_answer: usize,
}

impl Payload {
    pub(super) fn new(event: &HookEvent, now: Timestamp) -> Result<Self, CallError> {
        let broken = |error: serde_json::Error| CallError::Answer(error.to_string());
        let id = Uuid::now_v7().to_string();
        let mut value = serde_json::to_value(event).map_err(broken)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("id".to_owned(), id.clone().into());
            object.insert("at".to_owned(), rfc3339(now).into());
        }
        let text = match event {
            HookEvent::MessageAccepted { text, .. } => text.len(),
            _ => 0,
        };
        Ok(Self {
            id,
            body: serde_json::to_vec(&value).map_err(broken)?,
            timestamp: now.as_millis().div_euclid(1000),
            event: event.kind().name(),
            max_answer: text.saturating_mul(JSON_GROWTH).saturating_add(ANSWER_BYTES),
        })
    }
}
