//! The events of a streamed response, with consecutive sequence numbers.

use axum::body::Bytes;
use serde_json::{Value, json};

use crate::provider::playback::{Frame, FrameKind};
use crate::provider::reply::Block;

/// The events written so far.
#[derive(Debug, Default)]
pub(super) struct Events {
    frames: Vec<Frame>,
    items: usize,
}

impl Events {
    pub(super) fn structure(&mut self, name: &str, fields: Value) {
        self.add(FrameKind::Structure, name, fields);
    }

    pub(super) fn closing(&mut self, name: &str, fields: Value) {
        self.add(FrameKind::Closing, name, fields);
    }

    pub(super) fn into_frames(self) -> Vec<Frame> {
        self.frames
    }

    /// Adds all events of an item, given in its final form.
    pub(super) fn item(&mut self, block: &Block, item: &Value) {
        let place = self.items;
        self.items += 1;
        let started_item = started_item(item);
        self.structure("response.output_item.added", json!({"output_index": place, "item": started_item}));
        let of_item = |more: Value| {
            let mut fields = json!({"item_id": item.get("id"), "output_index": place});
            merge(&mut fields, more);
            fields
        };
        match block {
            Block::Text { deltas } => {
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                self.structure("response.content_part.added", of_item(json!({"content_index": 0, "part": part})));
                for delta in deltas {
                    self.delta("response.output_text.delta", of_item(json!({"content_index": 0, "delta": delta})));
                }
                let text = deltas.concat();
                self.structure("response.output_text.done", of_item(json!({"content_index": 0, "text": text})));
                let part = json!({"type": "output_text", "text": text, "annotations": []});
                self.structure("response.content_part.done", of_item(json!({"content_index": 0, "part": part})));
            }
            Block::Thinking { deltas, .. } if !deltas.is_empty() => {
                let part = json!({"type": "summary_text", "text": ""});
                let first = |more: Value| {
                    let mut fields = of_item(json!({"summary_index": 0}));
                    merge(&mut fields, more);
                    fields
                };
                self.structure("response.reasoning_summary_part.added", first(json!({ "part": part })));
                for delta in deltas {
                    self.delta("response.reasoning_summary_text.delta", first(json!({ "delta": delta })));
                }
                let text = deltas.concat();
                self.structure("response.reasoning_summary_text.done", first(json!({ "text": text })));
                let part = json!({"type": "summary_text", "text": text});
                self.structure("response.reasoning_summary_part.done", first(json!({ "part": part })));
            }
            Block::Tool { input_deltas, .. } => self.tool_input(item, input_deltas, of_item),
            Block::Thinking { .. } | Block::HiddenThinking { .. } | Block::RedactedThinking { .. } => {}
        }
        self.structure("response.output_item.done", json!({"output_index": place, "item": item}));
    }

    /// Adds the events of a tool call's input. A tool that runs at the provider has none.
    fn tool_input(&mut self, item: &Value, input_deltas: &[String], of_item: impl Fn(Value) -> Value) {
        let (delta_name, done_name, field) = match item.get("type").and_then(Value::as_str) {
            Some("function_call") => {
                ("response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments")
            }
            Some("custom_tool_call") => {
                ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input")
            }
            _ => ("", "", ""),
        };
        if let Some(whole) = item.get(field).and_then(Value::as_str) {
            // The pieces of the scenario's JSON are not the pieces of a custom tool's text.
            let pieces = if field == "input" { vec![whole] } else { input_deltas.iter().map(String::as_str).collect() };
            for piece in pieces {
                self.delta(delta_name, of_item(json!({ "delta": piece })));
            }
            self.structure(done_name, of_item(json!({ field: whole })));
        }
    }

    fn delta(&mut self, name: &str, fields: Value) {
        self.add(FrameKind::Delta, name, fields);
    }

    fn add(&mut self, kind: FrameKind, name: &str, fields: Value) {
        let mut value = json!({"type": name, "sequence_number": self.frames.len()});
        merge(&mut value, fields);
        self.frames.push(Frame { kind, bytes: event(&value) });
    }
}

/// Returns an item as it is before its first delta.
fn started_item(item: &Value) -> Value {
    let mut started_item = item.clone();
    let empty = [("content", json!([])), ("summary", json!([])), ("arguments", json!("")), ("input", json!(""))];
    if let Some(fields) = started_item.as_object_mut() {
        for (name, nothing) in empty.into_iter().chain([("status", json!("in_progress"))]) {
            if fields.contains_key(name) {
                fields.insert(name.to_owned(), nothing);
            }
        }
        fields.remove("action");
        fields.remove("encrypted_content");
    }
    started_item
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(fields), Value::Object(more)) = (into.as_object_mut(), more) {
        fields.extend(more);
    }
}

/// Returns a server-sent event, named by its type.
pub(super) fn event(value: &Value) -> Bytes {
    let name = value.get("type").and_then(Value::as_str).unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {value}\n\n"))
}
