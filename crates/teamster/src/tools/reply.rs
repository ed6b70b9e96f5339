//! What a tool answers.
//!
//! An MCP reply has a list of blocks (`content`), and may have one JSON document (`structuredContent`). Where there is a
//! document, Claude Code and Codex give the model that alone, and Gemini CLI makes one of a first block that is JSON. So
//! only a reply that is one JSON value and nothing else has a document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// What a tool answers: texts, JSON and images, in order. The model gets all of it.
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
    /// An image, as the bytes of a file of this media type.
    pub fn image(media_type: impl Into<String>, data: &[u8]) -> Self {
        Self { parts: vec![Part::Image { media_type: media_type.into(), data: STANDARD.encode(data) }] }
    }

    /// This, and then that.
    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        self.parts.extend(other.into().parts);
        self
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let structured = match self.parts.as_slice() {
            [Part::Json(value)] => Some(document(value.clone())),
            // Gemini CLI 0.61.0 reads a text that is JSON as a document, and refuses what is no object.
            [Part::Text(text)] => parsed(text).filter(|value| !value.is_object()).map(document),
            _ => None,
        };
        let is_alone = self.parts.len() == 1;
        let block = |(at, part): (usize, Part)| {
            let text = match part {
                Part::Text(text) => text,
                Part::Json(value) => value.to_string(),
                Part::Image { media_type, data } => return ContentBlock::image(data, media_type),
            };
            // Gemini CLI would take a first block of JSON for all there is.
            let is_taken = at == 0 && !is_alone && parsed(&text).is_some();
            ContentBlock::text(if is_taken { format!("```json\n{text}\n```") } else { text })
        };
        let mut result = CallToolResult::success(self.parts.into_iter().enumerate().map(block).collect());
        result.structured_content = structured;
        result
    }
}

/// A document is an object.
fn document(value: Value) -> Value {
    if value.is_object() { value } else { json!({ "result": value }) }
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

/// A tool that has nothing to say.
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
