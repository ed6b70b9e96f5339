//! Writes replies as server-sent events of the Messages API, or as one JSON message.

use axum::body::Bytes;
use serde_json::{Value, json};

use crate::provider::failure::{Failure, HttpError};
use crate::provider::playback::{Frame, FrameKind, OutgoingMessage, WireFormat};
use crate::provider::reply::{Block, RunsAt, Stop};
use crate::provider::state::Ids;
use crate::provider::usage::Usage;

/// The output tokens in `message_start`, when the real number is not known yet.
const OUTPUT_TOKENS_AT_START: u64 = 1;

#[derive(Debug)]
pub(super) struct Anthropic;

impl WireFormat for Anthropic {
    fn frames(&self, message: &OutgoingMessage<'_>) -> Vec<Frame> {
        let mut frames = Vec::new();
        let structure = |value: Value| frame(FrameKind::Structure, &value);
        let usage = message.reply.usage;
        let start = whole_message(message, &json!([]), &Value::Null, &full_usage(usage, OUTPUT_TOKENS_AT_START));
        frames.push(structure(json!({"type": "message_start", "message": start})));
        for (index, block) in message.reply.blocks.iter().enumerate() {
            let opened = opened(block, message.ids);
            frames.push(structure(json!({"type": "content_block_start", "index": index, "content_block": opened})));
            if index == 0 {
                frames.push(structure(json!({"type": "ping"})));
            }
            frames.extend(deltas(block).into_iter().map(|delta| {
                frame(FrameKind::Delta, &json!({"type": "content_block_delta", "index": index, "delta": delta}))
            }));
            frames.push(structure(json!({"type": "content_block_stop", "index": index})));
        }
        frames.push(frame(
            FrameKind::Closing,
            &json!({
                "type": "message_delta",
                "delta": {"stop_reason": stop_reason(message), "stop_sequence": null},
                "usage": {
                    "input_tokens": usage.input,
                    "cache_creation_input_tokens": usage.cache_write,
                    "cache_read_input_tokens": usage.cache_read,
                    "output_tokens": usage.output,
                },
            }),
        ));
        frames.push(structure(json!({"type": "message_stop"})));
        frames
    }

    fn whole(&self, message: &OutgoingMessage<'_>) -> Value {
        let usage = message.reply.usage;
        let blocks = message.reply.blocks.iter();
        let content = blocks.map(|block| finished(block, message.ids)).collect();
        let stop_reason = stop_reason(message).into();
        whole_message(message, &content, &stop_reason, &full_usage(usage, usage.output))
    }

    fn error(&self, error: &HttpError, ids: &Ids) -> (u16, Value) {
        let status = error.status.unwrap_or_else(|| vendor_error(error.failure).0);
        let (type_name, text) = error_fields(error);
        let body = json!({
            "type": "error",
            "error": {"type": type_name, "message": text},
            "request_id": ids.next("req_"),
        });
        (status, body)
    }

    fn error_event(&self, error: &HttpError) -> Bytes {
        let (type_name, text) = error_fields(error);
        let body = json!({"type": "error", "error": {"type": type_name, "message": text}});
        event("error", &body)
    }

    fn ping(&self) -> Bytes {
        event("ping", &json!({"type": "ping"}))
    }

    fn headers(&self, ids: &Ids) -> Vec<(String, String)> {
        vec![("request-id".to_owned(), ids.next("req_"))]
    }
}

fn whole_message(message: &OutgoingMessage<'_>, content: &Value, stop_reason: &Value, usage: &Value) -> Value {
    json!({
        "id": message.ids.next("msg_"),
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn full_usage(usage: Usage, output_tokens: u64) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output_tokens,
        "service_tier": "standard",
    })
}

fn stop_reason(message: &OutgoingMessage<'_>) -> String {
    let word = match message.reply.stop_or_default() {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::StopSequence => "stop_sequence",
        Stop::PauseTurn => "pause_turn",
        Stop::Other(word) => return word,
    };
    word.to_owned()
}

/// Returns a block as it is before its first delta.
fn opened(block: &Block, ids: &Ids) -> Value {
    match block {
        Block::Text { .. } => json!({"type": "text", "text": ""}),
        Block::Thinking { .. } | Block::HiddenThinking { .. } => {
            json!({"type": "thinking", "thinking": "", "signature": ""})
        }
        Block::RedactedThinking { data } => json!({"type": "redacted_thinking", "data": data}),
        Block::Tool { name, runs_at, .. } => tool(name, *runs_at, ids, &json!({})),
    }
}

fn deltas(block: &Block) -> Vec<Value> {
    match block {
        Block::Text { deltas } => deltas.iter().map(|text| json!({"type": "text_delta", "text": text})).collect(),
        Block::Thinking { deltas, signature } => deltas
            .iter()
            .map(|text| json!({"type": "thinking_delta", "thinking": text}))
            .chain([signed(signature)])
            .collect(),
        Block::HiddenThinking { estimated_tokens, signature } => estimated_tokens
            .iter()
            .map(|tokens| json!({"type": "thinking_delta", "thinking": "", "estimated_tokens": tokens}))
            .chain([signed(signature)])
            .collect(),
        Block::RedactedThinking { .. } => Vec::new(),
        // The real API starts every input with an empty piece.
        Block::Tool { input_deltas, .. } => std::iter::once("")
            .chain(input_deltas.iter().map(String::as_str))
            .map(|json| json!({"type": "input_json_delta", "partial_json": json}))
            .collect(),
    }
}

fn signed(signature: &str) -> Value {
    json!({"type": "signature_delta", "signature": signature})
}

/// Returns a block with all its content.
fn finished(block: &Block, ids: &Ids) -> Value {
    match block {
        Block::Text { deltas } => json!({"type": "text", "text": deltas.concat()}),
        Block::Thinking { deltas, signature } => {
            json!({"type": "thinking", "thinking": deltas.concat(), "signature": signature})
        }
        Block::HiddenThinking { signature, .. } => {
            json!({"type": "thinking", "thinking": "", "signature": signature})
        }
        Block::RedactedThinking { .. } => opened(block, ids),
        Block::Tool { name, input_deltas, runs_at } => {
            let json = input_deltas.concat();
            let input = serde_json::from_str(&json).unwrap_or(Value::String(json));
            tool(name, *runs_at, ids, &input)
        }
    }
}

fn tool(name: &str, runs_at: RunsAt, ids: &Ids, input: &Value) -> Value {
    let (kind, prefix) = match runs_at {
        RunsAt::Agent => ("tool_use", "toolu_"),
        RunsAt::Provider => ("server_tool_use", "srvtoolu_"),
    };
    json!({"type": kind, "id": ids.next(prefix), "name": name, "input": input})
}

fn frame(kind: FrameKind, value: &Value) -> Frame {
    let name = value.get("type").and_then(Value::as_str).unwrap_or_default();
    Frame { kind, bytes: event(name, value) }
}

fn event(name: &str, value: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {value}\n\n"))
}

/// Returns the type and the message of an error.
fn error_fields(error: &HttpError) -> (&str, &str) {
    let (_, type_name, message) = vendor_error(error.failure);
    (error.type_name.as_deref().unwrap_or(type_name), error.message.as_deref().unwrap_or(message))
}

/// Returns the vendor's status, type and message of a failure.
fn vendor_error(failure: Failure) -> (u16, &'static str, &'static str) {
    match failure {
        Failure::Unauthorized => (401, "authentication_error", "invalid x-api-key"),
        Failure::Forbidden => {
            (403, "permission_error", "Your API key does not have permission to use the specified resource.")
        }
        Failure::OutOfCredit => (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        Failure::ModelNotFound => (404, "not_found_error", "model: no such model"),
        Failure::PathNotFound => (404, "not_found_error", "Not Found"),
        Failure::RateLimited => (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
        Failure::Overloaded => (529, "overloaded_error", "Overloaded"),
        Failure::Internal => (500, "api_error", "Internal server error"),
        Failure::Unavailable => (503, "api_error", "Service unavailable"),
        Failure::InvalidRequest => (400, "invalid_request_error", "Invalid request"),
        Failure::PromptTooLong => (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
        Failure::RequestTooLarge => (413, "request_too_large", "Request exceeds the maximum size"),
    }
}
