//! Strategies for lines of output: random JSON, plausible lines of Claude Code, and recorded runs with changes.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::subject::{SUBJECTS, Subject};

/// The lines of each recorded run.
static RECORDED: LazyLock<Vec<Vec<Vec<u8>>>> = LazyLock::new(|| {
    let runs = SUBJECTS.iter().flat_map(Subject::captures);
    let lines = runs.map(|capture| capture.lines().map(<[u8]>::to_vec).collect::<Vec<_>>());
    // Very long lines test nothing further, and are slow.
    lines
        .map(|lines| lines.into_iter().filter(|line| line.len() < 20_000).collect::<Vec<_>>())
        .filter(|lines| !lines.is_empty())
        .collect()
});

/// Values of fields that protocols read.
const WORDS: &[&str] = &[
    "",
    "m1",
    "m2",
    "t1",
    "t2",
    "init",
    "assistant",
    "user",
    "system",
    "result",
    "stream_event",
    "control_request",
    "rate_limit_event",
    "keep_alive",
    "message_start",
    "message_delta",
    "message_stop",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "text",
    "thinking",
    "tool_use",
    "server_tool_use",
    "tool_result",
    "web_search_tool_result",
    "api_retry",
    "compact_boundary",
    "model_refusal_fallback",
    "success",
    "error_max_turns",
    "aborted_tools",
    "stop_sequence",
    "<synthetic>",
    "allowed_warning",
    "rate_limit",
    "mcp__a__b",
    "00000000-0000-4000-8000-000000000001",
    "{\"a\":",
    "\u{1f44b}",
    "session/update",
    "session/request_permission",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "pending",
    "in_progress",
    "completed",
    "failed",
    "allow_once",
    "reject_once",
    "cancelled",
];

/// Names of fields that protocols read.
const KEYS: &[&str] = &[
    "type",
    "subtype",
    "event",
    "message",
    "content",
    "content_block",
    "delta",
    "index",
    "id",
    "name",
    "input",
    "text",
    "thinking",
    "partial_json",
    "tool_use_id",
    "parent_tool_use_id",
    "session_id",
    "uuid",
    "model",
    "error",
    "is_error",
    "result",
    "errors",
    "usage",
    "modelUsage",
    "stop_reason",
    "terminal_reason",
    "supersedes",
    "retracted_message_uuids",
    "rate_limit_info",
    "status",
    "resetsAt",
    "request_id",
    "request",
    "mcp_servers",
    "tools",
    "permission_denials",
    "tool_name",
    "num_turns",
    "structured_output",
    "retry_delay_ms",
    "api_error_status",
];

/// JSON with the field names and values that protocols read, in random combinations.
pub(crate) fn vocabulary() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => select(WORDS).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        2 => (0_u64..3).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => vec((select(KEYS), inner), 0..8).prop_map(|entries| {
                entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Value>()
            }),
        ]
    })
}

/// Lines in the format of Claude Code, with random content.
pub(crate) fn plausible_line() -> impl Strategy<Value = Value> {
    let id = || select(vec!["m1", "m2", "m3"]);
    let tool = || select(vec!["t1", "t2", "t3"]);
    let parent = || select(vec![Value::Null, Value::Null, "t1".into()]);
    let text = || select(vec!["", "a", "ab", "abc"]);
    let block = move || {
        prop_oneof![
            text().prop_map(|text| json!({"type": "text", "text": text})),
            text().prop_map(|text| json!({"type": "thinking", "thinking": text})),
            tool().prop_map(|id| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}})),
            tool().prop_map(|id| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})),
            tool().prop_map(|id| json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})),
        ]
    };
    let event = prop_oneof![
        id().prop_map(|id| json!({"type": "message_start", "message": {"id": id, "model": "m"}})),
        (0_u32..3, block()).prop_map(|(index, block)| {
            json!({"type": "content_block_start", "index": index, "content_block": block})
        }),
        (0_u32..3, text()).prop_map(|(index, text)| {
            json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})
        }),
        (0_u32..3, text()).prop_map(|(index, text)| {
            json!({"type": "content_block_delta", "index": index, "delta": {"partial_json": text}})
        }),
        (0_u32..3).prop_map(|index| json!({"type": "content_block_stop", "index": index})),
        Just(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}})),
        Just(json!({"type": "message_stop"})),
    ];
    let uuid = || select(vec!["u1", "u2", "u3"]);
    prop_oneof![
        8 => (event, parent()).prop_map(|(event, parent)| {
            json!({"type": "stream_event", "event": event, "parent_tool_use_id": parent})
        }),
        6 => (id(), vec(block(), 0..3), parent(), uuid(), vec(uuid(), 0..2)).prop_map(
            |(id, content, parent, uuid, supersedes)| {
                json!({"type": "assistant", "message": {"id": id, "content": content}, "parent_tool_use_id": parent,
                       "uuid": uuid, "supersedes": supersedes})
            }
        ),
        4 => (tool(), parent()).prop_map(|(tool, parent)| {
            json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": tool}]},
                   "parent_tool_use_id": parent})
        }),
        1 => Just(json!({"type": "system", "subtype": "init", "session_id": "s"})),
        1 => vec(uuid(), 1..3).prop_map(|uuids| {
            json!({"type": "system", "subtype": "model_refusal_fallback", "retracted_message_uuids": uuids})
        }),
        1 => (any::<bool>(), text()).prop_map(|(is_error, text)| {
            json!({"type": "result", "subtype": "success", "is_error": is_error, "result": text})
        }),
    ]
}

/// A recorded run whose lines are dropped, repeated and moved.
pub(crate) fn disordered() -> impl Strategy<Value = Vec<Vec<u8>>> {
    (any::<Index>(), vec(any::<Index>(), 0..60)).prop_map(|(run, picks)| {
        let lines = &RECORDED[run.index(RECORDED.len())];
        picks.into_iter().map(|pick| lines[pick.index(lines.len())].clone()).collect()
    })
}

#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Drop(Index, usize),
    Append,
}

/// A recorded run with changed bytes.
pub(crate) fn damaged() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let damage = prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        (any::<Index>(), vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<Index>(), 1_usize..200).prop_map(|(at, count)| Damage::Drop(at, count)),
        Just(Damage::Append),
    ];
    (any::<Index>(), vec((any::<Index>(), damage), 1..12)).prop_map(|(run, damages)| {
        let mut lines = RECORDED[run.index(RECORDED.len())].clone();
        for (at, damage) in damages {
            let at = at.index(lines.len());
            let other = lines[(at + 1) % lines.len()].clone();
            let line = &mut lines[at];
            let length = line.len() + 1;
            match damage {
                Damage::Cut(at) => line.truncate(at.index(length)),
                Damage::Flip(at, byte) if !line.is_empty() => {
                    let at = at.index(line.len());
                    line[at] ^= byte;
                }
                Damage::Flip(..) => {}
                Damage::Insert(at, bytes) => {
                    let at = at.index(length);
                    line.splice(at..at, bytes);
                }
                Damage::Drop(at, count) => {
                    let at = at.index(length);
                    let end = (at + count).min(line.len());
                    line.drain(at..end);
                }
                Damage::Append => line.extend(other),
            }
        }
        lines
    })
}

/// A recorded run in which values are replaced by others. Its lines are still JSON.
pub(crate) fn distorted() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let change = (any::<Index>(), any::<Index>(), vocabulary());
    (any::<Index>(), vec(change, 1..8)).prop_map(|(run, changes)| {
        let mut lines = RECORDED[run.index(RECORDED.len())].clone();
        for (at, place, value) in changes {
            let at = at.index(lines.len());
            if let Ok(mut document) = serde_json::from_slice::<Value>(&lines[at]) {
                let mut places = Vec::new();
                pointers(&document, String::new(), &mut places);
                *document.pointer_mut(&places[place.index(places.len())]).unwrap() = value;
                lines[at] = document.to_string().into_bytes();
            }
        }
        lines
    })
}

/// Returns the JSON pointers of all values of a document.
fn pointers(value: &Value, path: String, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                pointers(value, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), all);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                pointers(value, format!("{path}/{at}"), all);
            }
        }
        _ => {}
    }
    all.push(path);
}

/// Returns the documents as lines.
pub(crate) fn written(documents: Vec<Value>) -> Vec<Vec<u8>> {
    documents.into_iter().map(|document| document.to_string().into_bytes()).collect()
}
