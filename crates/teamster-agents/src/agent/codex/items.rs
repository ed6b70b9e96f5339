//! Items of `codex` 0.169.0. Both interfaces use them, with different spellings of names.
//!
//! Unknown fields are skipped. The type of an item is a string, and decides which fields exist.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::agent::json_string::JsonString;
use crate::agent::line::{Text, if_readable};
use teamster_types::json::RawJson;

#[derive(Debug, Deserialize)]
pub(super) struct ErrorBody {
    pub(super) message: String,
}

/// A part of a turn. It has no `id` field here: a web search has two, and a struct accepts a key only once.
#[derive(Debug, Deserialize)]
pub(super) struct Item {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) message: Option<String>,
    pub(super) status: Option<String>,
    /// `command_execution`
    pub(super) command: Option<String>,
    #[serde(alias = "aggregatedOutput")]
    pub(super) aggregated_output: Option<String>,
    #[serde(alias = "exitCode")]
    pub(super) exit_code: Option<i64>,
    /// `file_change`
    pub(super) changes: Option<Vec<Change>>,
    /// `mcp_tool_call`
    pub(super) server: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) arguments: Option<RawJson>,
    pub(super) result: Option<McpResult>,
    pub(super) error: Option<ErrorBody>,
    /// `web_search`
    pub(super) query: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) action: Option<Value>,
    /// `todo_list`
    pub(super) items: Option<Vec<Todo>>,
    /// `collab_tool_call`
    pub(super) prompt: Option<String>,
    #[serde(alias = "receiverThreadIds")]
    pub(super) receiver_thread_ids: Option<Vec<String>>,
    #[serde(alias = "agentsStates")]
    pub(super) agents_states: Option<BTreeMap<String, AgentState>>,
}

impl Item {
    /// Converts an item of the app-server to the spelling of `exec`.
    pub(super) fn in_snake_case(mut self) -> Self {
        let convert = |name: &mut String| *name = snake_case(name);
        convert(&mut self.kind);
        self.status.iter_mut().for_each(convert);
        if self.kind == "collab_agent_tool_call" {
            "collab_tool_call".clone_into(&mut self.kind);
            self.tool.iter_mut().for_each(convert);
        }
        self.agents_states.iter_mut().flatten().for_each(|(_, state)| convert(&mut state.status));
        if let Some(Value::String(kind)) = self.action.as_mut().and_then(|action| action.get_mut("type")) {
            convert(kind);
        }
        self
    }
}

fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[derive(Debug, Deserialize)]
pub(super) struct Change {
    pub(super) path: String,
    #[serde(deserialize_with = "change_kind")]
    pub(super) kind: String,
    /// Only the app-server reports it.
    pub(super) diff: Option<String>,
}

/// Reads a string, or the field `type` of an object.
fn change_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let kind = Value::deserialize(deserializer)?;
    let name = kind.as_str().or_else(|| kind.get("type")?.as_str());
    Ok(name.unwrap_or_default().to_owned())
}

#[derive(Debug, Deserialize)]
pub(super) struct McpResult {
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) content: Vec<RawJson>,
    #[serde(default, alias = "structuredContent", deserialize_with = "if_readable")]
    pub(super) structured_content: Option<RawJson>,
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

/// The fields that decide how an item is read. They are all of a message, which is most of what the CLI prints.
#[derive(Debug, Default)]
pub(super) struct ItemHead<'a> {
    pub(super) kind: Cow<'a, str>,
    /// The first `id`, which is the CLI's own. The second one, of a web search, is the vendor's.
    pub(super) id: Option<Cow<'a, str>>,
    /// The text of a message or of reasoning.
    pub(super) text: Option<JsonString<'a>>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum HeadField {
    Type,
    Id,
    Text,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for ItemHead<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Fields<'a> {
            type Value = ItemHead<'a>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an item")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<ItemHead<'a>, A::Error> {
                let mut head = ItemHead::default();
                while let Some(field) = fields.next_key()? {
                    match field {
                        HeadField::Type => head.kind = fields.next_value::<Text<'a>>()?.0,
                        HeadField::Id if head.id.is_none() => head.id = Some(fields.next_value::<Text<'a>>()?.0),
                        HeadField::Text => head.text = fields.next_value()?,
                        HeadField::Id | HeadField::Other => _ = fields.next_value::<IgnoredAny>()?,
                    }
                }
                Ok(head)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_item_with_two_ids_is_the_first_one() {
        // web_search
        let item = r#"{"id":"item_0","type":"web_search","id":"ws_1","query":"q","action":{"type":"other"}}"#;
        assert_eq!(serde_json::from_str::<ItemHead<'_>>(item).unwrap().id.as_deref(), Some("item_0"));
        assert_eq!(serde_json::from_str::<Item>(item).unwrap().query.as_deref(), Some("q"));
    }

    #[test]
    fn an_item_of_the_app_server_is_converted_to_the_spelling_of_exec() {
        let item =
            r#"{"type":"fileChange","status":"inProgress","changes":[{"path":"/a","kind":{"type":"add"},"diff":"x"}]}"#;
        let item = serde_json::from_str::<Item>(item).unwrap().in_snake_case();
        let changes = item.changes.unwrap();
        assert_eq!((item.kind.as_str(), item.status.as_deref()), ("file_change", Some("in_progress")));
        assert_eq!((changes[0].kind.as_str(), changes[0].diff.as_deref()), ("add", Some("x")));
        let call =
            r#"{"type":"collabAgentToolCall","tool":"spawnAgent","agentsStates":{"t":{"status":"pendingInit"}}}"#;
        let call = serde_json::from_str::<Item>(call).unwrap().in_snake_case();
        assert_eq!((call.kind.as_str(), call.tool.as_deref()), ("collab_tool_call", Some("spawn_agent")));
        assert_eq!(call.agents_states.unwrap()["t"].status, "pending_init");
    }
}
