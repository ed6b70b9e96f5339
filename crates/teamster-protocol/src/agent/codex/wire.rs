//! The lines that `codex exec --json` 0.169.0 writes, typed as far as we use them.
//!
//! Unknown fields are skipped, unknown types are data. Items are flat: which fields are there depends on their type.

use std::collections::BTreeMap;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::line::Text;

/// A line.
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

/// Tokens of the whole thread: cached ones stand inside `input_tokens`, reasoning inside `output_tokens`.
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

#[derive(Debug, Deserialize)]
pub(super) struct ErrorBody {
    pub(super) message: String,
}

/// What happened in a turn. Its `id` is not here: a web search has two of them, and a struct takes a key but once.
#[derive(Debug, Deserialize)]
pub(super) struct Item {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    pub(super) message: Option<String>,
    pub(super) status: Option<String>,
    /// `command_execution`
    pub(super) command: Option<String>,
    pub(super) aggregated_output: Option<String>,
    pub(super) exit_code: Option<i64>,
    /// `file_change`
    pub(super) changes: Option<Vec<Change>>,
    /// `mcp_tool_call`
    pub(super) server: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) arguments: Option<Value>,
    pub(super) result: Option<McpResult>,
    pub(super) error: Option<ErrorBody>,
    /// `web_search`
    pub(super) query: Option<String>,
    pub(super) action: Option<Value>,
    /// `todo_list`
    pub(super) items: Option<Vec<Todo>>,
    /// `collab_tool_call`
    pub(super) prompt: Option<String>,
    pub(super) receiver_thread_ids: Option<Vec<String>>,
    pub(super) agents_states: Option<BTreeMap<String, AgentState>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) kind: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct McpResult {
    #[serde(default)]
    pub(super) content: Vec<Value>,
    pub(super) structured_content: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Todo {
    pub(super) text: String,
    #[serde(default)]
    pub(super) completed: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct AgentState {
    pub(super) status: String,
    pub(super) message: Option<String>,
}

/// The first `id` of an item: the CLI's own. The second one of a web search is the vendor's.
#[derive(Debug)]
pub(super) struct FirstId(pub(super) Option<String>);

impl<'de> Deserialize<'de> for FirstId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = FirstId;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an item")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<FirstId, A::Error> {
                let mut first = None;
                while let Some(key) = fields.next_key::<String>()? {
                    if key == "id" && first.is_none() {
                        first = Some(fields.next_value::<String>()?);
                    } else {
                        fields.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(FirstId(first))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_with_two_ids_has_the_first_one() {
        // web_search
        let item = r#"{"id":"item_0","type":"web_search","id":"ws_1","query":"q","action":{"type":"other"}}"#;
        assert_eq!(serde_json::from_str::<FirstId>(item).unwrap().0.as_deref(), Some("item_0"));
        assert_eq!(serde_json::from_str::<Item>(item).unwrap().query.as_deref(), Some("q"));
    }
}
