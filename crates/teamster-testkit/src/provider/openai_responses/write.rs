//! Writes replies as the Responses API does: as one response, or as numbered events.

use axum::body::Bytes;
use serde_json::{Value, json};

use super::events::Events;
use crate::provider::failure::{Failure, HttpError};
use crate::provider::playback::{Frame, OutgoingMessage, WireFormat};
use crate::provider::reply::{Block, RunsAt, Stop};
use crate::provider::state::Ids;
use crate::provider::usage::Usage;

#[derive(Debug)]
pub(super) struct OpenAiResponses;

impl WireFormat for OpenAiResponses {
    fn frames(&self, message: &OutgoingMessage<'_>) -> Vec<Frame> {
        let id = message.ids.next("resp_");
        let started = response(message, &id, "in_progress", &json!([]));
        let mut events = Events::default();
        events.structure("response.created", json!({"response": started}));
        events.structure("response.in_progress", json!({"response": started}));
        let output = message.reply.blocks.iter().map(|block| {
            let item = item(block, message.ids);
            events.item(block, &item);
            item
        });
        let output = Value::Array(output.collect());
        let (event, whole) = ended(message, &id, &output);
        events.closing(event, json!({ "response": whole }));
        events.into_frames()
    }

    fn whole(&self, message: &OutgoingMessage<'_>) -> Value {
        let id = message.ids.next("resp_");
        let output = message.reply.blocks.iter().map(|block| item(block, message.ids)).collect();
        ended(message, &id, &output).1
    }

    fn error(&self, error: &HttpError, _: &Ids) -> (u16, Value) {
        let fields = ErrorFields::of(error);
        let status = error.status.unwrap_or(fields.status);
        let body = json!({
            "error": {"message": fields.message, "type": fields.type_name, "param": null, "code": fields.code},
        });
        (status, body)
    }

    fn error_event(&self, error: &HttpError) -> Bytes {
        let fields = ErrorFields::of(error);
        let code = fields.code.unwrap_or(fields.type_name);
        let response = json!({
            "id": "resp_failed", "object": "response", "status": "failed", "output": [], "usage": null,
            "error": {"code": code, "message": fields.message},
        });
        // The number should be that of the next event, but no reader uses it.
        super::events::event(&json!({"type": "response.failed", "sequence_number": 0, "response": response}))
    }

    fn ping(&self) -> Bytes {
        super::events::event(&json!({"type": "keepalive", "sequence_number": 0}))
    }

    fn headers(&self, ids: &Ids) -> Vec<(String, String)> {
        vec![("x-request-id".to_owned(), ids.next("req_"))]
    }
}

fn response(message: &OutgoingMessage<'_>, id: &str, status: &str, output: &Value) -> Value {
    json!({
        "id": id,
        "object": "response",
        "created_at": 1_767_225_600,
        "status": status,
        "model": message.model,
        "output": output,
        "error": null,
        "incomplete_details": null,
        "usage": null,
    })
}

/// Returns the name of the last event and the final response.
fn ended(message: &OutgoingMessage<'_>, id: &str, output: &Value) -> (&'static str, Value) {
    let reason = match message.reply.stop_or_default() {
        Stop::EndTurn | Stop::ToolUse | Stop::StopSequence => None,
        Stop::MaxTokens => Some("max_output_tokens".to_owned()),
        Stop::Refusal => Some("content_filter".to_owned()),
        Stop::PauseTurn => Some("pause_turn".to_owned()),
        Stop::Other(word) => Some(word),
    };
    let (event, status) = match reason {
        None => ("response.completed", "completed"),
        Some(_) => ("response.incomplete", "incomplete"),
    };
    let mut whole = response(message, id, status, output);
    if let Some(fields) = whole.as_object_mut() {
        fields.insert("usage".to_owned(), usage(message.reply.usage));
        if let Some(reason) = reason {
            fields.insert("incomplete_details".to_owned(), json!({ "reason": reason }));
        }
    }
    (event, whole)
}

/// Returns the usage. Cached tokens are part of `input_tokens`.
fn usage(usage: Usage) -> Value {
    let input = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + usage.output,
    })
}

/// Returns the final item of a block.
fn item(block: &Block, ids: &Ids) -> Value {
    match block {
        Block::Text { deltas } => json!({
            "type": "message", "id": ids.next("msg_"), "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": deltas.concat(), "annotations": []}],
        }),
        Block::Thinking { deltas, signature } => {
            let text = deltas.concat();
            let summary = if text.is_empty() { json!([]) } else { json!([{"type": "summary_text", "text": text}]) };
            reasoning(ids, &summary, signature)
        }
        Block::HiddenThinking { signature, .. } => reasoning(ids, &json!([]), signature),
        Block::RedactedThinking { data } => reasoning(ids, &json!([]), data),
        Block::Tool { name, input_deltas, runs_at: RunsAt::Provider } => {
            let input: Value = serde_json::from_str(&input_deltas.concat()).unwrap_or_default();
            let query = input.get("query").cloned().unwrap_or_default();
            json!({
                "type": format!("{name}_call"), "id": ids.next("ws_"), "status": "completed",
                "action": {"type": "search", "query": query, "queries": [query]},
            })
        }
        Block::Tool { name, input_deltas, runs_at: RunsAt::Agent } => tool(name, &input_deltas.concat(), ids),
    }
}

fn reasoning(ids: &Ids, summary: &Value, encrypted: &str) -> Value {
    json!({"type": "reasoning", "id": ids.next("rs_"), "summary": summary, "encrypted_content": encrypted})
}

/// Returns a function call, or a call of a custom tool (`apply_patch`) if the input is a JSON
/// string. A name `NAMESPACE/NAME` belongs to a tool in a namespace, the form in which Codex offers
/// the tools of MCP servers.
fn tool(name: &str, json: &str, ids: &Ids) -> Value {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    let mut item = match serde_json::from_str(json) {
        Ok(Value::String(text)) => json!({"type": "custom_tool_call", "id": ids.next("ctc_"), "input": text}),
        _ => json!({"type": "function_call", "id": ids.next("fc_"), "arguments": json}),
    };
    if let Some(fields) = item.as_object_mut() {
        fields.insert("call_id".to_owned(), ids.next("call_").into());
        fields.insert("name".to_owned(), name.into());
        fields.insert("status".to_owned(), "completed".into());
        if let Some(namespace) = namespace {
            fields.insert("namespace".to_owned(), namespace.into());
        }
    }
    item
}

/// The vendor's representation of an error.
struct ErrorFields<'a> {
    status: u16,
    type_name: &'a str,
    code: Option<&'a str>,
    message: &'a str,
}

impl<'a> ErrorFields<'a> {
    /// Values that the test sets take precedence. A name sets both the type and the code, because
    /// agents use either one.
    fn of(error: &'a HttpError) -> Self {
        let mut fields = Self::of_failure(error.failure);
        if let Some(name) = error.type_name.as_deref() {
            (fields.type_name, fields.code) = (name, Some(name));
        }
        if let Some(message) = error.message.as_deref() {
            fields.message = message;
        }
        fields
    }

    fn of_failure(failure: Failure) -> Self {
        let invalid = "invalid_request_error";
        let (status, type_name, code, message) = match failure {
            Failure::Unauthorized => (401, invalid, Some("invalid_api_key"), "Incorrect API key provided."),
            Failure::Forbidden => (403, invalid, None, "You do not have access to this resource."),
            Failure::OutOfCredit => (
                429,
                "insufficient_quota",
                Some("insufficient_quota"),
                "You exceeded your current quota, please check your plan and billing details.",
            ),
            Failure::ModelNotFound => (404, invalid, Some("model_not_found"), "The requested model does not exist."),
            Failure::PathNotFound => (404, invalid, None, "Not Found"),
            Failure::RateLimited => {
                (429, "rate_limit_exceeded", Some("rate_limit_exceeded"), "Rate limit reached for requests.")
            }
            Failure::Overloaded => {
                (503, "server_error", Some("server_is_overloaded"), "Our servers are currently overloaded.")
            }
            Failure::Internal => {
                (500, "server_error", Some("server_error"), "The server had an error while processing your request.")
            }
            Failure::Unavailable => (503, "server_error", None, "The service is unavailable."),
            Failure::InvalidRequest => (400, invalid, Some("invalid_request"), "Invalid request."),
            Failure::PromptTooLong => (
                400,
                invalid,
                Some("context_length_exceeded"),
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            Failure::RequestTooLarge => (413, invalid, None, "The request is too large."),
        };
        ErrorFields { status, type_name, code, message }
    }
}
