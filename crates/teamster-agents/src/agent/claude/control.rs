//! What we write to Claude Code's standard input in session mode: user messages and the control protocol.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

use super::dialog;
use teamster_types::event::SteerId;
use teamster_types::json::RawJson;
use teamster_types::request::{Attachment, AttachmentKind, Prompt, PromptMode, RequestError};

/// The id of our `initialize` request.
pub(super) const INITIALIZE: &str = "teamster-initialize";
/// The id of our `interrupt` request.
pub(super) const INTERRUPT: &str = "teamster-interrupt";

/// The id of our `set_model` requests.
pub(super) const SET_MODEL: &str = "teamster-set-model";

/// Asks for what no flag gives: the words of subagents, and a schema of any length.
pub(super) fn initialize(schema: Option<&Value>) -> Vec<u8> {
    let mut request = json!({ "subtype": "initialize", "forwardSubagentText": true });
    if let (Some(schema), Some(request)) = (schema, request.as_object_mut()) {
        request.insert("jsonSchema".to_owned(), schema.clone());
    }
    line(&json!({ "type": "control_request", "request_id": INITIALIZE, "request": request }))
}

/// Asks to stop the running turn.
pub(super) fn interrupt() -> Vec<u8> {
    line(&json!({ "type": "control_request", "request_id": INTERRUPT, "request": { "subtype": "interrupt" } }))
}

/// Asks for another model.
pub(super) fn set_model(model: &str) -> Vec<u8> {
    let request = json!({ "subtype": "set_model", "model": model });
    line(&json!({ "type": "control_request", "request_id": SET_MODEL, "request": request }))
}

/// Answers a request of the CLI.
pub(super) fn respond(request_id: &str, response: &dialog::Response) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        response: Success<'a>,
    }
    #[derive(Serialize)]
    struct Success<'a> {
        subtype: &'static str,
        request_id: &'a str,
        response: &'a dialog::Response,
    }
    let response = Success { subtype: "success", request_id, response };
    // Not by way of a `Value`: an input goes back as it came.
    let mut bytes = serde_json::to_vec(&Line { r#type: "control_response", response }).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Allows the call that the CLI asks permission for, as it is.
pub(super) fn allow(request_id: &str, input: RawJson) -> Vec<u8> {
    respond(request_id, &dialog::Response::allow(input))
}

/// Why a call is denied that nobody can be asked about.
pub(super) const UNATTENDED: &str = "This run cannot ask for permission.";

/// Refuses what the CLI asks of its host: a run can neither ask a person nor serve hooks, and a request without an
/// answer would wait for ever.
pub(super) fn refuse(request_id: &str, subtype: &str) -> Vec<u8> {
    let response = if subtype == "can_use_tool" {
        let denial = json!({ "behavior": "deny", "message": UNATTENDED });
        json!({ "subtype": "success", "request_id": request_id, "response": denial })
    } else {
        json!({ "subtype": "error", "request_id": request_id, "error": format!("{subtype} is not supported here") })
    };
    line(&json!({ "type": "control_response", "response": response }))
}

/// A prompt with its attachments.
pub(super) fn user_message(
    prompt: &str,
    attachments: &[Attachment],
    mode: PromptMode,
) -> Result<Vec<u8>, RequestError> {
    Ok(line(&json!({ "type": "user", "message": message(prompt, attachments, mode)? })))
}

/// A prompt of a session whose agent may begin turns by itself. With another priority it could be taken up within such a turn.
pub(super) fn offer(id: &SteerId, prompt: &Prompt, mode: PromptMode) -> Result<Vec<u8>, RequestError> {
    let message = message(&prompt.text, &prompt.attachments, mode)?;
    Ok(line(&json!({ "type": "user", "message": message, "uuid": id.as_str(), "priority": "later" })))
}

/// Asks for an offered prompt back.
pub(super) fn claim(id: &SteerId) -> Vec<u8> {
    let request = json!({ "subtype": "cancel_async_message", "message_uuid": id.as_str() });
    line(&json!({ "type": "control_request", "request_id": claim_id(id), "request": request }))
}

/// The id of that request.
pub(super) fn claim_id(id: &SteerId) -> String {
    format!("teamster-claim-{}", id.as_str())
}

/// A prompt that is said while a turn runs. The CLI echoes it, by its uuid, when the model is about to hear it.
pub(super) fn steering(id: &SteerId, prompt: &Prompt, mode: PromptMode) -> Result<Vec<u8>, RequestError> {
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
        // 2.1.197 looks for a leading `/` and for `@path` in the last text block alone, and drops an empty one.
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
                problem: "it has not been read: the caller must read it before the start".to_owned(),
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
            problem: "it is no text, PNG, JPEG, GIF, WebP or PDF".to_owned(),
        }),
    }
}

/// One line of JSON. A non-JSON line would kill the CLI at once, so lines are made nowhere else.
fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}
