//! The lines that Teamster writes to Claude Code's standard input in session mode: user messages and the control protocol of
//! 2.1.197.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

use teamster_types::event::SteerId;
use teamster_types::json::RawJson;
use teamster_types::request::{Attachment, AttachmentKind, Prompt, PromptMode, RequestError, RunRequest};

/// The id of the `initialize` request.
pub(super) const INITIALIZE: &str = "teamster-initialize";
/// The id of the `interrupt` request.
pub(super) const INTERRUPT: &str = "teamster-interrupt";
/// The id of all `set_model` requests.
pub(super) const SET_MODEL: &str = "teamster-set-model";

/// The reason for the denial of a call that needs a user, in a run without one.
pub(super) const UNATTENDED: &str = "This run cannot ask for permission.";

/// The answer to a permission request. Without `updatedInput`, the CLI treats the answer as a denial.
#[derive(Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
pub(super) enum PermissionResponse {
    #[serde(rename_all = "camelCase")]
    Allow {
        updated_input: RawJson,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_permissions: Option<Vec<Value>>,
    },
    Deny {
        message: String,
    },
}

impl PermissionResponse {
    /// Allows one call, with this input.
    pub(super) fn allow(input: RawJson) -> Self {
        Self::Allow { updated_input: input, updated_permissions: None }
    }

    pub(super) fn deny(message: &str) -> Self {
        Self::Deny { message: message.to_owned() }
    }
}

/// Requests what no flag of every version provides: the output of subagents, a schema of any length, and the system prompt of
/// this request.
///
/// 2.1.276 and newer store the system prompt of a session's first request, and send it again whenever the session is resumed,
/// also if another one is given. 2.1.197 ignores the field.
pub(super) fn initialize(of: &RunRequest) -> Vec<u8> {
    let mut request = json!({ "subtype": "initialize", "forwardSubagentText": true });
    if let (Some(schema), Some(request)) = (&of.schema, request.as_object_mut()) {
        request.insert("jsonSchema".to_owned(), schema.clone());
    }
    if let (true, Some(request)) = (has_system_prompt(of), request.as_object_mut()) {
        request.insert("systemPromptSnapshot".to_owned(), false.into());
    }
    line(&json!({ "type": "control_request", "request_id": INITIALIZE, "request": request }))
}

/// Whether the request changes the system prompt.
pub(super) fn has_system_prompt(request: &RunRequest) -> bool {
    request.system_prompt.is_some() || request.append_system_prompt.is_some()
}

/// Requests the end of the running turn.
pub(super) fn interrupt() -> Vec<u8> {
    line(&json!({ "type": "control_request", "request_id": INTERRUPT, "request": { "subtype": "interrupt" } }))
}

/// Requests another model.
pub(super) fn set_model(model: &str) -> Vec<u8> {
    let request = json!({ "subtype": "set_model", "model": model });
    line(&json!({ "type": "control_request", "request_id": SET_MODEL, "request": request }))
}

/// Answers a permission request of the CLI.
pub(super) fn respond(request_id: &str, response: &PermissionResponse) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        response: Success<'a>,
    }
    #[derive(Serialize)]
    struct Success<'a> {
        subtype: &'static str,
        request_id: &'a str,
        response: &'a PermissionResponse,
    }
    let response = Success { subtype: "success", request_id, response };
    // Serialized directly, because a `Value` would change large numbers and deep input.
    let mut bytes = serde_json::to_vec(&Line { r#type: "control_response", response }).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Rejects a request of the CLI. A run can neither ask a user nor serve hooks, and a request without an answer would wait forever.
pub(super) fn reject(request_id: &str, subtype: &str) -> Vec<u8> {
    if subtype == "can_use_tool" {
        return respond(request_id, &PermissionResponse::deny(UNATTENDED));
    }
    let error = format!("{subtype} is not supported here");
    let response = json!({ "subtype": "error", "request_id": request_id, "error": error });
    line(&json!({ "type": "control_response", "response": response }))
}

/// Returns the line of a prompt with its attachments.
pub(super) fn user_message(
    prompt: &str,
    attachments: &[Attachment],
    mode: PromptMode,
) -> Result<Vec<u8>, RequestError> {
    Ok(line(&json!({ "type": "user", "message": message(prompt, attachments, mode)? })))
}

/// Returns the line of a prompt of a session with background tasks. With another priority, the CLI could insert the prompt into
/// a turn that it started by itself.
pub(super) fn queued_prompt(id: &SteerId, prompt: &Prompt, mode: PromptMode) -> Result<Vec<u8>, RequestError> {
    let message = message(&prompt.text, &prompt.attachments, mode)?;
    Ok(line(&json!({ "type": "user", "message": message, "uuid": id.as_str(), "priority": "later" })))
}

/// Requests that the CLI removes a queued prompt from its queue.
pub(super) fn cancel_prompt(id: &SteerId) -> Vec<u8> {
    let request = json!({ "subtype": "cancel_async_message", "message_uuid": id.as_str() });
    line(&json!({ "type": "control_request", "request_id": cancel_id(id), "request": request }))
}

/// Returns the id of the request that cancels a prompt.
pub(super) fn cancel_id(id: &SteerId) -> String {
    format!("teamster-cancel-{}", id.as_str())
}

/// Returns the line of a prompt that is sent during a turn. The CLI echoes it, with its uuid, when the model is about to receive
/// it.
pub(super) fn steering_prompt(id: &SteerId, prompt: &Prompt, mode: PromptMode) -> Result<Vec<u8>, RequestError> {
    let message = message(&prompt.text, &prompt.attachments, mode)?;
    Ok(line(&json!({ "type": "user", "message": message, "uuid": id.as_str() })))
}

fn message(prompt: &str, attachments: &[Attachment], mode: PromptMode) -> Result<Value, RequestError> {
    let mut blocks = attachments.iter().map(attachment_block).collect::<Result<Vec<_>, _>>()?;
    let text = |text: &str| json!({ "type": "text", "text": text });
    let content = match mode {
        PromptMode::Agent if blocks.is_empty() => Value::String(prompt.to_owned()),
        PromptMode::Agent => {
            blocks.push(text(prompt));
            Value::Array(blocks)
        }
        // 2.1.197 interprets a leading `/` and `@path` only in the last text block, and drops an empty block.
        PromptMode::Literal => {
            blocks.extend([text(prompt), text("")]);
            Value::Array(blocks)
        }
    };
    Ok(json!({ "role": "user", "content": content }))
}

fn attachment_block(attachment: &Attachment) -> Result<Value, RequestError> {
    let (name, data) = match attachment {
        Attachment::Data { name, data } => (name, data),
        Attachment::Path(path) => {
            return Err(RequestError::Attachment {
                name: path.display().to_string(),
                problem: "the file was not read before the start".to_owned(),
            });
        }
    };
    let base64 =
        |media_type: &str| json!({ "type": "base64", "media_type": media_type, "data": BASE64_STANDARD.encode(data) });
    match AttachmentKind::of(data) {
        Some(AttachmentKind::Image(media_type)) => Ok(json!({ "type": "image", "source": base64(media_type) })),
        Some(AttachmentKind::Pdf) => Ok(json!({ "type": "document", "source": base64("application/pdf") })),
        Some(AttachmentKind::Text) => {
            let text = String::from_utf8_lossy(data);
            Ok(json!({ "type": "text", "text": format!("Attached file {name}:\n{text}") }))
        }
        None => Err(RequestError::Attachment {
            name: name.clone(),
            problem: "it is not a text, PNG, JPEG, GIF, WebP or PDF".to_owned(),
        }),
    }
}

/// Returns a line of JSON. The CLI exits at once on a line that is not JSON, so only this function and `respond` write lines.
fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}
