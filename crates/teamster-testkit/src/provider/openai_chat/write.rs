//! Writes replies as chunks of a chat completion, or as one completion.

use axum::body::Bytes;
use serde_json::{Value, json};

use crate::provider::failure::{Failure, HttpError};
use crate::provider::playback::{Frame, FrameKind, OutgoingMessage, WireFormat};
use crate::provider::reply::{Block, Stop};
use crate::provider::state::Ids;
use crate::provider::usage::Usage;

#[derive(Debug)]
pub(super) struct OpenAiChat;

impl WireFormat for OpenAiChat {
    fn frames(&self, message: &OutgoingMessage<'_>) -> Vec<Frame> {
        let id = message.ids.next("chatcmpl-");
        let chunk = |kind: FrameKind, delta: &Value, finish: Option<&str>| Frame {
            kind,
            bytes: event(&json!({
                "id": id,
                "object": "chat.completion.chunk",
                "created": 0,
                "model": message.model,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            })),
        };
        let mut frames = vec![chunk(FrameKind::Structure, &json!({"role": "assistant", "content": ""}), None)];
        let mut tools = 0;
        for block in &message.reply.blocks {
            match block {
                Block::Text { deltas } => {
                    let deltas = deltas.iter().map(|text| json!({"content": text}));
                    frames.extend(deltas.map(|delta| chunk(FrameKind::Delta, &delta, None)));
                }
                Block::Thinking { deltas, .. } => {
                    let deltas = deltas.iter().map(|text| json!({"reasoning_content": text}));
                    frames.extend(deltas.map(|delta| chunk(FrameKind::Delta, &delta, None)));
                }
                // This API sends nothing about hidden thinking.
                Block::HiddenThinking { .. } | Block::RedactedThinking { .. } => {}
                Block::Tool { name, input_deltas, .. } => {
                    let opened = json!({"tool_calls": [{
                        "index": tools,
                        "id": message.ids.next("call_"),
                        "type": "function",
                        "function": {"name": name, "arguments": ""},
                    }]});
                    frames.push(chunk(FrameKind::Structure, &opened, None));
                    let deltas = input_deltas
                        .iter()
                        .map(|json| json!({"tool_calls": [{"index": tools, "function": {"arguments": json}}]}));
                    frames.extend(deltas.map(|delta| chunk(FrameKind::Delta, &delta, None)));
                    tools += 1;
                }
            }
        }
        frames.push(chunk(FrameKind::Closing, &json!({}), Some(&finish_reason(message))));
        let usage = json!({
            "id": id,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": message.model,
            "choices": [],
            "usage": usage(message.reply.usage),
        });
        frames.push(Frame { kind: FrameKind::Structure, bytes: event(&usage) });
        frames.push(Frame { kind: FrameKind::Structure, bytes: Bytes::from_static(b"data: [DONE]\n\n") });
        frames
    }

    fn whole(&self, message: &OutgoingMessage<'_>) -> Value {
        let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
        for block in &message.reply.blocks {
            match block {
                Block::Text { deltas } => text.push_str(&deltas.concat()),
                Block::Thinking { deltas, .. } => reasoning.push_str(&deltas.concat()),
                Block::HiddenThinking { .. } | Block::RedactedThinking { .. } => {}
                Block::Tool { name, input_deltas, .. } => calls.push(json!({
                    "id": message.ids.next("call_"),
                    "type": "function",
                    "function": {"name": name, "arguments": input_deltas.concat()},
                })),
            }
        }
        let mut reply = json!({"role": "assistant", "content": text});
        if let Some(fields) = reply.as_object_mut() {
            if !reasoning.is_empty() {
                fields.insert("reasoning_content".to_owned(), reasoning.into());
            }
            if !calls.is_empty() {
                fields.insert("tool_calls".to_owned(), calls.into());
            }
        }
        json!({
            "id": message.ids.next("chatcmpl-"),
            "object": "chat.completion",
            "created": 0,
            "model": message.model,
            "choices": [{"index": 0, "message": reply, "finish_reason": finish_reason(message)}],
            "usage": usage(message.reply.usage),
        })
    }

    fn error(&self, error: &HttpError, _: &Ids) -> (u16, Value) {
        (error.status.unwrap_or_else(|| vendor_error(error.failure).0), error_body(error))
    }

    fn error_event(&self, error: &HttpError) -> Bytes {
        event(&error_body(error))
    }

    fn ping(&self) -> Bytes {
        Bytes::from_static(b": ping\n\n")
    }

    fn headers(&self, ids: &Ids) -> Vec<(String, String)> {
        vec![("x-request-id".to_owned(), ids.next("req_"))]
    }
}

/// Returns the usage. Cached tokens are part of the prompt tokens; this API does not report cache
/// writes.
fn usage(usage: Usage) -> Value {
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    })
}

fn finish_reason(message: &OutgoingMessage<'_>) -> String {
    let word = match message.reply.stop_or_default() {
        Stop::EndTurn | Stop::StopSequence | Stop::PauseTurn => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
        Stop::Other(word) => return word,
    };
    word.to_owned()
}

fn event(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

fn error_body(error: &HttpError) -> Value {
    let (_, type_name, code, message) = vendor_error(error.failure);
    json!({"error": {
        "message": error.message.as_deref().unwrap_or(message),
        "type": error.type_name.as_deref().unwrap_or(type_name),
        "param": null,
        "code": code,
    }})
}

/// Returns the vendor's status, type, code and message of a failure.
fn vendor_error(failure: Failure) -> (u16, &'static str, Option<&'static str>, &'static str) {
    match failure {
        Failure::Unauthorized => {
            (401, "invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided: sk-made-up.")
        }
        Failure::Forbidden => (403, "permission_error", None, "You do not have access to this resource."),
        Failure::OutOfCredit => (
            429,
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        Failure::ModelNotFound => (
            404,
            "invalid_request_error",
            Some("model_not_found"),
            "The model does not exist or you do not have access to it.",
        ),
        Failure::PathNotFound => (404, "invalid_request_error", None, "Invalid URL"),
        Failure::RateLimited => (429, "requests", Some("rate_limit_exceeded"), "Rate limit reached for requests"),
        Failure::Overloaded => {
            (503, "server_error", None, "The server is currently overloaded, please try again later")
        }
        Failure::Internal => (500, "server_error", None, "The server had an error while processing your request"),
        Failure::Unavailable => (503, "server_error", None, "Service unavailable"),
        Failure::InvalidRequest => (400, "invalid_request_error", None, "Invalid request"),
        Failure::PromptTooLong => (
            400,
            "invalid_request_error",
            Some("context_length_exceeded"),
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        ),
        Failure::RequestTooLarge => (413, "invalid_request_error", None, "Request too large"),
    }
}
