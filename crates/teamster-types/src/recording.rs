//! The format of recordings: the input and output of an agent's processes with times, as one JSON object per line.
//!
//! The first line is [`RecordedItem::Recording`]. Readers must ignore lines with an unknown [kind](RecordedItem::Other), which a
//! later version may add. Known secrets are replaced by placeholders. Prompts and answers are unchanged.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::event::Event;

/// The version of the format.
pub const VERSION: u32 = 1;

/// One line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The time since the start of the recording, in milliseconds.
    pub at_ms: f64,
    /// The recorded item.
    #[serde(flatten)]
    pub item: RecordedItem,
}

/// An item of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum RecordedItem {
    /// The start of the recording.
    Recording {
        /// The format's [version](VERSION).
        version: u32,
        /// The agent's name.
        agent: String,
    },
    /// The start of a process. The following items belong to it, until the next start.
    Start {
        /// The program, as requested.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// Bytes that were written to standard input.
    In(Payload),
    /// The end of standard input.
    InEnd,
    /// A line of the stream that carries the protocol.
    Out(Payload),
    /// A line of the other stream, which carries diagnostics.
    Err(Payload),
    /// An HTTP call to the process's server.
    Call {
        /// The number of the call and of its reply. Older recordings have no numbers; there, replies are in the order of the calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// The method.
        method: String,
        /// The path, with an optional query.
        path: String,
        /// The body, a JSON document.
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<Payload>,
    },
    /// The server's reply to a call.
    Reply {
        /// The call's number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<u64>,
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Payload,
    },
    /// An event from the server's event stream.
    ServerEvent(Payload),
    /// The exit of the process.
    Exit {
        /// The exit code; `None` if a signal killed the process.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The name of the signal that killed the process.
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
    },
    /// An event that was emitted to the caller.
    Event {
        /// The event.
        event: Box<Event>,
    },
    /// Lines that are missing because the disk was too slow.
    Lost {
        /// The number of lines.
        lines: u64,
    },
    /// An unknown kind.
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Entry {
    /// Requires a deserializer of `serde_json`, as events do.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        read_entry(raw.get()).map_err(D::Error::custom)
    }
}

fn read_entry(line: &str) -> serde_json::Result<Entry> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        at_ms: f64,
        kind: String,
    }
    #[derive(Deserialize)]
    struct EventField {
        event: Box<Event>,
    }
    let Head { at_ms, kind } = serde_json::from_str(line)?;
    // The event is read directly from the text, because a buffer would change the JSON in it.
    let item = if kind == "event" {
        RecordedItem::Event { event: serde_json::from_str::<EventField>(line)?.event }
    } else {
        let mut members: Map<String, Value> = serde_json::from_str(line)?;
        members.remove("atMs");
        serde_json::from_value(Value::Object(members))?
    };
    Ok(Entry { at_ms, item })
}

/// Recorded bytes, as text if they are UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Payload {
    /// Text, including its line end.
    Text(String),
    /// Bytes that are not UTF-8, in Base64.
    Base64(String),
}

impl Payload {
    /// Creates a payload from bytes.
    pub fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(BASE64_STANDARD.encode(bytes)),
        }
    }

    /// Returns the bytes; `None` if the Base64 is invalid.
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Text(text) => Some(text.as_bytes().into()),
            Self::Base64(text) => BASE64_STANDARD.decode(text).ok().map(Cow::Owned),
        }
    }
}

/// The error of an invalid line in a recording.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the recording is invalid: {source}")]
pub struct ReadError {
    /// The number of the line, starting at 1.
    pub line: usize,
    /// The error in the line.
    pub source: serde_json::Error,
}

/// Reads a recording. An incomplete last line is ignored, because the process that wrote the recording may have been killed. Then
/// the recording ends without the event `done`.
///
/// # Errors
/// If another line is invalid.
pub fn read(text: &str) -> Result<Vec<Entry>, ReadError> {
    let mut entries = Vec::new();
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    while let Some((at, line)) = lines.next() {
        match serde_json::from_str(line) {
            Ok(entry) => entries.push(entry),
            Err(source) if (source.is_eof() || !text.ends_with('\n')) && lines.peek().is_none() && at > 0 => break,
            Err(source) => return Err(ReadError { line: at + 1, source }),
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"type":"tool_use","toolId":"t","toolName":"x","input":{"far":1e400},"kind":"other"}"#;

    #[test]
    fn lines_are_written_as_documented_and_read_back() {
        let entry = |item| Entry { at_ms: 1.5, item };
        let rows = [
            (
                RecordedItem::Recording { version: VERSION, agent: "claude".to_owned() },
                r#"{"atMs":1.5,"kind":"recording","version":1,"agent":"claude"}"#,
            ),
            (
                RecordedItem::Start { program: "claude".to_owned(), args: vec!["-p".to_owned()] },
                r#"{"atMs":1.5,"kind":"start","program":"claude","args":["-p"]}"#,
            ),
            (RecordedItem::In(Payload::new(b"hi\n")), r#"{"atMs":1.5,"kind":"in","text":"hi\n"}"#),
            (RecordedItem::InEnd, r#"{"atMs":1.5,"kind":"in_end"}"#),
            (RecordedItem::Out(Payload::new(b"\xff\n")), r#"{"atMs":1.5,"kind":"out","base64":"/wo="}"#),
            (
                RecordedItem::Reply { call: Some(7), status: 200, body: Payload::new(b"{}") },
                r#"{"atMs":1.5,"kind":"reply","call":7,"status":200,"body":{"text":"{}"}}"#,
            ),
            (RecordedItem::Exit { code: Some(0), signal: None }, r#"{"atMs":1.5,"kind":"exit","code":0}"#),
            (RecordedItem::Lost { lines: 2 }, r#"{"atMs":1.5,"kind":"lost","lines":2}"#),
            (
                RecordedItem::Event { event: Box::new(serde_json::from_str(CALL).unwrap()) },
                r#"{"atMs":1.5,"kind":"event","event":{"type":"tool_use","toolId":"t","toolName":"x","input":{"far":1e400},"kind":"other"}}"#,
            ),
        ];
        for (item, line) in rows {
            let entry = entry(item);
            assert_eq!(serde_json::to_string(&entry).unwrap(), line);
            assert_eq!(read(line).unwrap(), [entry]);
        }
        assert_eq!(read(r#"{"atMs":0,"kind":"later","more":1}"#).unwrap()[0].item, RecordedItem::Other);
    }

    #[test]
    fn an_incomplete_last_line_is_ignored_and_the_error_names_any_other_invalid_line() {
        let good = r#"{"atMs":0,"kind":"in_end"}"#;
        assert_eq!(read(&format!("{good}\n{{\"atMs\":1,\"ki")).unwrap().len(), 1);
        assert_eq!(read(&format!("{good}\n\nno\n{good}")).unwrap_err().line, 3);
        assert!(read("no").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_recorded_bytes_are_read_back(bytes: Vec<u8>) {
            let line = serde_json::to_string(&Entry { at_ms: 0.0, item: RecordedItem::Out(Payload::new(&bytes)) }).unwrap();
            let entries = read(&line).unwrap();
            let RecordedItem::Out(payload) = &entries[0].item else { panic!("{entries:?}") };
            proptest::prop_assert_eq!(payload.bytes().unwrap().into_owned(), bytes);
        }
    }
}
