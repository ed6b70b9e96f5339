//! The reply of a tool.
//!
//! An MCP reply has a list of blocks (`content`), and may have one JSON document (`structuredContent`). If there is a document,
//! Claude Code and Codex give the model only the document. Gemini CLI makes a document of a first block that is JSON. So only a
//! reply that is a single JSON value has a document.
//!
//! The CLIs read and write a document as JavaScript does: a number beyond 2^53 loses digits. So a value with such a number is
//! sent as a text that no CLI reads as a document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The largest number up to which JavaScript represents every integer exactly: 2^53 - 1.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// The reply of a tool: texts, JSON and images, in order. The model gets all of it.
///
/// ```
/// use teamster::tools::Reply;
/// let reply = Reply::from("Here it is:").and(Reply::image("image/png", b"\x89PNG"));
/// # _ = reply;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Json(Value),
    Image { media_type: String, data: String },
}

impl Reply {
    /// Creates a reply with an image: the bytes of a file with this media type.
    pub fn image(media_type: impl Into<String>, data: &[u8]) -> Self {
        Self { parts: vec![Part::Image { media_type: media_type.into(), data: STANDARD.encode(data) }] }
    }

    /// Appends another reply.
    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        self.parts.extend(other.into().parts);
        self
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let structured = match self.parts.as_slice() {
            [Part::Json(value)] => Some(document(value.clone())),
            // Gemini CLI 0.61.0 reads a JSON text as a document, and rejects one that is not an object.
            [Part::Text(text)] if is_json(text) && !is_object(text) => Some(document(exact_or_text(text))),
            _ => None,
        };
        let structured = structured.filter(is_exact);
        let is_alone = self.parts.len() == 1;
        let block = |(at, part): (usize, Part)| {
            let text = match part {
                Part::Text(text) => text,
                Part::Json(value) => value.to_string(),
                Part::Image { media_type, data } => return ContentBlock::image(data, media_type),
            };
            // Gemini CLI would read only a first JSON block, or round its numbers.
            let is_whole = is_alone && (structured.is_some() || parsed(&text).is_some_and(|value| is_exact(&value)));
            let is_taken = at == 0 && !is_whole && is_json(&text);
            ContentBlock::text(if is_taken { format!("```json\n{text}\n```") } else { text })
        };
        let mut result = CallToolResult::success(self.parts.into_iter().enumerate().map(block).collect());
        result.structured_content = structured;
        result
    }
}

/// Returns the value as a document. A document is an object.
fn document(value: Value) -> Value {
    if value.is_object() { value } else { json!({ "result": value }) }
}

/// Whether a CLI may read a text as JSON. That includes texts whose numbers are too large or whose depth is too great for
/// [`Value`].
fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Returns the value of a JSON text. Returns the text itself if a CLI would read another value.
fn exact_or_text(text: &str) -> Value {
    parsed(text).filter(is_exact).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Whether JavaScript represents all numbers of the value exactly.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() <= MAX_EXACT),
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self { parts: vec![Part::Text(text)] }
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// An empty reply, for a tool without output.
impl From<()> for Reply {
    fn from((): ()) -> Self {
        "done".into()
    }
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        Self { parts: vec![Part::Json(value)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the document of a reply, and its texts.
    fn sent(reply: impl Into<Reply>) -> (Option<Value>, Vec<String>) {
        let result = serde_json::to_value(reply.into().into_result()).unwrap();
        let texts = result["content"].as_array().unwrap().iter().filter_map(|block| block["text"].as_str());
        (result.get("structuredContent").cloned(), texts.map(str::to_owned).collect())
    }

    #[test]
    fn a_number_that_a_cli_would_round_is_sent_as_text() {
        let large = 1_234_567_890_123_456_789_u64;
        for text in ["1234567890123456789", "[18446744073709551617]", "1e400", "-9007199254740993"] {
            assert_eq!(sent(text), (Some(json!({ "result": text })), vec![text.to_owned()]), "{text}");
        }
        let text = format!("{{\"id\":{large}}}");
        let as_text = vec![format!("```json\n{text}\n```")];
        assert_eq!(sent(text), (None, as_text.clone()));
        assert_eq!(sent(json!({ "id": large })), (None, as_text));
        assert_eq!(sent(json!({ "id": 7 })), (Some(json!({ "id": 7 })), vec!["{\"id\":7}".to_owned()]));
        assert_eq!(sent("42"), (Some(json!({ "result": 42 })), vec!["42".to_owned()]));
    }

    #[test]
    fn a_first_text_that_only_a_cli_reads_as_json_does_not_hide_the_rest() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for first in ["1e400", r#""\ud800""#, deep.as_str()] {
            let (document, texts) = sent(Reply::from(first).and("and more"));
            assert_eq!((document, texts), (None, vec![format!("```json\n{first}\n```"), "and more".to_owned()]));
            assert_eq!(sent(first).0, Some(json!({ "result": first })));
        }
    }
}
