//! The body of a prompt (`prompt_async`).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::super::environment::AGENT;
use super::super::error::unsupported;
use teamster_types::request::{Attachment, AttachmentKind, RequestError, RunRequest};

/// The options of every prompt of a run or a session.
#[derive(Debug)]
pub(super) struct PromptOptions {
    model: Option<Model>,
    effort: Option<String>,
    schema: Option<Value>,
}

#[derive(Debug)]
struct Model {
    provider: String,
    name: String,
}

impl PromptOptions {
    /// Returns the options of a request.
    pub(super) fn of(request: &RunRequest) -> Result<Self, RequestError> {
        let model = request.model.as_deref().map(|name| model(name).ok_or_else(|| invalid_model(name))).transpose()?;
        Ok(Self { model, effort: request.effort.clone(), schema: request.schema.clone() })
    }

    /// Sets the model of the next prompts.
    pub(super) fn set_model(&mut self, name: &str) -> Result<(), RequestError> {
        self.model = Some(model(name).ok_or_else(|| invalid_model(name))?);
        Ok(())
    }

    /// Returns whether the answer must follow a schema.
    pub(super) fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// Returns the body of a prompt.
    pub(super) fn body(&self, text: &str, attachments: &[Attachment]) -> Result<Value, RequestError> {
        let mut parts = attachments.iter().map(file).collect::<Result<Vec<_>, _>>()?;
        parts.push(json!({ "type": "text", "text": text }));
        let mut body = json!({ "agent": AGENT, "parts": parts });
        let mut set = |name: &str, value: Value| {
            if let Some(fields) = body.as_object_mut() {
                fields.insert(name.to_owned(), value);
            }
        };
        if let Some(Model { provider, name }) = &self.model {
            set("model", json!({ "providerID": provider, "modelID": name }));
        }
        if let Some(effort) = &self.effort {
            set("variant", json!(effort));
        }
        if let Some(schema) = &self.schema {
            set("format", json!({ "type": "json_schema", "schema": schema }));
        }
        Ok(body)
    }
}

/// Parses `PROVIDER/MODEL`. The model's name may contain further slashes.
fn model(name: &str) -> Option<Model> {
    let (provider, name) = name.split_once('/')?;
    let is_complete = !provider.is_empty() && !name.is_empty();
    is_complete.then(|| Model { provider: provider.to_owned(), name: name.to_owned() })
}

fn invalid_model(name: &str) -> RequestError {
    let why = format!("{name:?} names no provider: write PROVIDER/MODEL");
    unsupported("model", why)
}

/// Returns the part of an attachment.
fn file(attachment: &Attachment) -> Result<Value, RequestError> {
    let refuse = |name: &str, problem: &str| {
        Err(RequestError::Attachment { name: name.to_owned(), problem: problem.to_owned() })
    };
    let Attachment::Data { name, data } = attachment else {
        return refuse("a path", "it has not been read; the caller must read it before the start");
    };
    let mime = match AttachmentKind::of(data) {
        Some(AttachmentKind::Image(mime)) => mime,
        Some(AttachmentKind::Pdf) => "application/pdf",
        Some(AttachmentKind::Text) => "text/plain",
        None => return refuse(name, "it is not a text, PNG, JPEG, GIF, WebP or PDF"),
    };
    let url = format!("data:{mime};base64,{}", BASE64_STANDARD.encode(data));
    Ok(json!({ "type": "file", "mime": mime, "filename": name, "url": url }))
}
