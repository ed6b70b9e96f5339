//! The lines that `codex exec --json` 0.169.0 writes: the fields that are used. Unknown fields are skipped. Types are strings.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::items::{ErrorBody, ItemHead};
use crate::agent::line::Text;

/// A line of `codex exec --json`.
#[derive(Debug, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) thread_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    pub(super) usage: Option<TurnUsage>,
    pub(super) error: Option<ErrorBody>,
    pub(super) message: Option<String>,
}

/// The start of a line with a complete item.
pub(super) const ITEM_COMPLETED: &str = r#"{"type":"item.completed","#;

/// The item of a line that starts with [`ITEM_COMPLETED`].
#[derive(Debug, Deserialize)]
pub(super) struct CompletedItem<'a> {
    #[serde(borrow)]
    pub(super) item: ItemHead<'a>,
}

/// The tokens of the whole thread. Cached tokens are part of `input_tokens`, reasoning is part of `output_tokens`.
#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(super) struct TurnUsage {
    pub(super) input_tokens: u64,
    pub(super) cached_input_tokens: Option<u64>,
    pub(super) cache_write_input_tokens: Option<u64>,
    pub(super) output_tokens: u64,
    pub(super) reasoning_output_tokens: Option<u64>,
}
