//! What a tool answers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// What a tool answers: texts, JSON and images, in order.
///
/// ```
/// use teamster::tools::Reply;
/// let reply = Reply::from("Here it is:").and(Reply::image("image/png", b"\x89PNG"));
/// # _ = reply;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    content: Vec<ContentBlock>,
    structured: Option<Value>,
}

impl Reply {
    /// An image, as the bytes of a file of this media type.
    pub fn image(media_type: impl Into<String>, data: &[u8]) -> Self {
        Self { content: vec![ContentBlock::image(STANDARD.encode(data), media_type)], structured: None }
    }

    /// This, and then that.
    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        let other = other.into();
        self.content.extend(other.content);
        self.structured = other.structured.or(self.structured);
        self
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(self.content);
        result.structured_content = self.structured;
        result
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        // Gemini CLI 0.61.0 reads a text that is JSON as structured content, and refuses what is no object.
        let structured = match serde_json::from_str(&text) {
            Ok(Value::Object(_)) | Err(_) => None,
            Ok(value) => Some(json!({ "result": value })),
        };
        Self { content: vec![ContentBlock::text(text)], structured }
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
        let text = ContentBlock::text(value.to_string());
        let structured = if value.is_object() { value } else { json!({ "result": value }) };
        Self { content: vec![text], structured: Some(structured) }
    }
}
