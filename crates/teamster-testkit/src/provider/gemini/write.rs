//! Writes replies as server-sent events of the Gemini API, or as one JSON document.

use axum::body::Bytes;
use serde_json::{Value, json};

use crate::provider::failure::{Failure, HttpError};
use crate::provider::playback::{Frame, FrameKind, OutgoingMessage, WireFormat};
use crate::provider::reply::{Block, RunsAt, Stop};
use crate::provider::state::Ids;
use crate::provider::usage::Usage;

#[derive(Debug)]
pub(super) struct Gemini;

impl WireFormat for Gemini {
    fn frames(&self, message: &OutgoingMessage<'_>) -> Vec<Frame> {
        let response = message.ids.next("resp_");
        let delta = |part: Value| {
            let content = json!({"role": "model", "parts": [part]});
            let chunk = document(message, &response, &json!({"content": content, "index": 0}), None);
            Frame { kind: FrameKind::Delta, bytes: event(&chunk) }
        };
        let mut frames: Vec<Frame> =
            message.reply.blocks.iter().flat_map(|block| parts(block, message.ids)).map(delta).collect();
        let mut candidate = json!({"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0});
        finish(&mut candidate, message);
        let end = document(message, &response, &candidate, Some(usage(message)));
        frames.push(Frame { kind: FrameKind::Closing, bytes: event(&end) });
        frames
    }

    fn whole(&self, message: &OutgoingMessage<'_>) -> Value {
        let parts: Vec<Value> = message.reply.blocks.iter().flat_map(|block| whole_parts(block, message.ids)).collect();
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        finish(&mut candidate, message);
        document(message, &message.ids.next("resp_"), &candidate, Some(usage(message)))
    }

    fn error(&self, error: &HttpError, _: &Ids) -> (u16, Value) {
        let status = status(error);
        (status, error_body(error, status))
    }

    fn error_event(&self, error: &HttpError) -> Bytes {
        event(&error_body(error, status(error)))
    }

    /// Returns a chunk without a candidate, because the protocol has no ping.
    fn ping(&self) -> Bytes {
        event(&json!({"candidates": []}))
    }

    fn headers(&self, _: &Ids) -> Vec<(String, String)> {
        Vec::new()
    }
}

fn document(message: &OutgoingMessage<'_>, response: &str, candidate: &Value, usage: Option<Value>) -> Value {
    let mut document = json!({"candidates": [candidate], "modelVersion": message.model, "responseId": response});
    if let (Some(fields), Some(usage)) = (document.as_object_mut(), usage) {
        fields.insert("usageMetadata".to_owned(), usage);
    }
    document
}

/// Sets the finish reason. An empty [`Stop::Other`] omits it, which simulates a broken stream.
fn finish(candidate: &mut Value, message: &OutgoingMessage<'_>) {
    let word = match message.reply.stop_or_default() {
        Stop::EndTurn | Stop::ToolUse | Stop::StopSequence => "STOP".to_owned(),
        Stop::MaxTokens => "MAX_TOKENS".to_owned(),
        Stop::Refusal => "SAFETY".to_owned(),
        Stop::PauseTurn => "OTHER".to_owned(),
        Stop::Other(word) => word,
    };
    if let Some(fields) = candidate.as_object_mut().filter(|_| !word.is_empty()) {
        fields.insert("finishReason".to_owned(), word.into());
    }
}

/// Returns the usage. Cached tokens are part of the prompt tokens; thinking tokens are separate
/// from the candidates' tokens. A reply with thinking spends a quarter of its output on it.
fn usage(message: &OutgoingMessage<'_>) -> Value {
    let Usage { input, cache_read, cache_write, output } = message.reply.usage;
    let prompt = input + cache_read + cache_write;
    let thinks = message.reply.blocks.iter().any(|block| {
        matches!(block, Block::Thinking { .. } | Block::HiddenThinking { .. } | Block::RedactedThinking { .. })
    });
    let thoughts = if thinks { output / 4 } else { 0 };
    json!({
        "promptTokenCount": prompt,
        "cachedContentTokenCount": cache_read,
        "candidatesTokenCount": output - thoughts,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": prompt + output,
    })
}

/// Returns the parts of a block, one per delta. The arguments of a call are never split.
fn parts(block: &Block, ids: &Ids) -> Vec<Value> {
    match block {
        Block::Text { deltas } => deltas.iter().map(|text| json!({"text": text})).collect(),
        Block::Thinking { deltas, .. } => deltas.iter().map(|text| json!({"text": text, "thought": true})).collect(),
        Block::HiddenThinking { .. } | Block::RedactedThinking { .. } | Block::Tool { .. } => whole_parts(block, ids),
    }
}

fn whole_parts(block: &Block, ids: &Ids) -> Vec<Value> {
    match block {
        Block::Text { deltas } => vec![json!({"text": deltas.concat()})],
        Block::Thinking { deltas, .. } => vec![json!({"text": deltas.concat(), "thought": true})],
        Block::HiddenThinking { signature, .. } => vec![json!({"text": "", "thoughtSignature": signature})],
        Block::RedactedThinking { data } => vec![json!({"text": "", "thoughtSignature": data})],
        Block::Tool { name, input_deltas, runs_at } => {
            let json = input_deltas.concat();
            let input = serde_json::from_str(&json).unwrap_or(Value::String(json));
            vec![match runs_at {
                RunsAt::Agent => json!({"functionCall": {"id": ids.next("call_"), "name": name, "args": input}}),
                RunsAt::Provider => {
                    json!({"executableCode": {"language": "PYTHON", "code": format!("{name}({input})")}})
                }
            }]
        }
    }
}

fn event(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\r\n\r\n"))
}

fn status(error: &HttpError) -> u16 {
    error.status.unwrap_or_else(|| vendor_error(error.failure).0)
}

fn error_body(error: &HttpError, status: u16) -> Value {
    let (_, type_name, text) = vendor_error(error.failure);
    json!({"error": {
        "code": status,
        "message": error.message.as_deref().unwrap_or(text),
        "status": error.type_name.as_deref().unwrap_or(type_name),
    }})
}

/// Returns the vendor's code, status and message of a failure.
fn vendor_error(failure: Failure) -> (u16, &'static str, &'static str) {
    match failure {
        Failure::Unauthorized => (401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
        Failure::Forbidden => (403, "PERMISSION_DENIED", "The caller does not have permission"),
        Failure::OutOfCredit => (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."),
        Failure::ModelNotFound => (404, "NOT_FOUND", "models/none is not found for API version v1beta"),
        Failure::PathNotFound => (404, "NOT_FOUND", "Requested entity was not found."),
        Failure::RateLimited => (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
        Failure::Overloaded => (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        Failure::Internal => (500, "INTERNAL", "An internal error has occurred."),
        Failure::Unavailable => (503, "UNAVAILABLE", "The service is currently unavailable."),
        Failure::InvalidRequest => (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
        Failure::PromptTooLong => (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        Failure::RequestTooLarge => (413, "INVALID_ARGUMENT", "Request payload size exceeds the limit."),
    }
}
