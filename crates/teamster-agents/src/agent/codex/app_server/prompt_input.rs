//! The input of a turn: a prompt and its attachments, as the app-server reads them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::super::prompt::{self, Content};
use teamster_types::request::{Attachment, RequestError, RunRequest};

/// A path that does not exist.
pub(super) const MISSING_PATH: &str = "/nonexistent/teamster";

/// Converts prompts to the input of turns.
#[derive(Debug)]
pub(super) struct PromptEncoder {
    is_literal: bool,
    pub(super) schema: Option<Value>,
}

impl PromptEncoder {
    pub(super) fn new(request: &RunRequest) -> Self {
        Self { is_literal: prompt::is_literal(request), schema: request.schema.clone() }
    }

    /// Returns the input of a turn.
    pub(super) fn input(&self, text: &str, attachments: &[Attachment]) -> Result<Value, RequestError> {
        let Content { text, images } = prompt::content(text, attachments)?;
        let mut input: Vec<Value> = Vec::new();
        for image in images {
            let data = BASE64_STANDARD.encode(image.data);
            input.push(json!({ "type": "image", "url": format!("data:{};base64,{data}", image.media_type) }));
        }
        if self.is_literal {
            // 0.169.0 prefers a skill that the input names over one that the text mentions. This one has no file.
            let skill = |name| json!({ "type": "skill", "name": name, "path": MISSING_PATH });
            input.extend(prompt::skills(&text)?.into_iter().map(skill));
        }
        input.push(json!({ "type": "text", "text": text, "text_elements": [] }));
        Ok(input.into())
    }
}
