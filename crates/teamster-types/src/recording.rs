//! What went in and out of an agent's processes, with times: one JSON object a line.
//!
//! The first line is [`RecordedItem::Recording`]. Lines that a later version adds are unknown [kinds](RecordedItem::Other); readers
//! pass over them. Known secrets stand in it as words in their places; prompts and answers stand in it as they are.

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
    /// Milliseconds since the recording began.
    pub at_ms: f64,
    /// What happened.
    #[serde(flatten)]
    pub item: RecordedItem,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum RecordedItem {
    /// The recording begins.
    Recording {
        /// The format's [version](VERSION).
        version: u32,
        /// The agent's name.
        agent: String,
    },
    /// A process was started. What follows is its, until the next one is.
    Start {
        /// The program, as it was asked for.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It was given this on its standard input.
    In(Payload),
    /// Its standard input was closed.
    InEnd,
    /// It said this where the protocol is spoken.
    Out(Payload),
    /// It said this beside the protocol.
    Err(Payload),
    /// Its server was asked this over HTTP.
    Call {
        /// The call's number, which its reply has too. Older recordings have none: there calls were answered in order.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// The method.
        method: String,
        /// The path, with a query if there was one.
        path: String,
        /// A JSON document.
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<Payload>,
    },
    /// Its server answered a call.
    Reply {
        /// The call's number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<u64>,
        /// The status.
        status: u16,
        /// What it said.
        body: Payload,
    },
    /// Its server told of an event.
    ServerEvent(Payload),
    /// It exited.
    Exit {
        /// The exit code, unless a signal ended it.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The signal that ended it, by its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
    },
    /// The caller was told this.
    Event {
        /// The event.
        event: Box<Event>,
    },
    /// So many lines are missing here: the disk was too slow for them.
    Lost {
        /// How many.
        lines: u64,
    },
    /// Something that this version does not know.
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Entry {
    /// Needs a deserializer of `serde_json`, as an event does.
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
    struct Told {
        event: Box<Event>,
    }
    let Head { at_ms, kind } = serde_json::from_str(line)?;
    // An event is read as it was written: nothing that buffers it may come between.
    let item = if kind == "event" {
        RecordedItem::Event { event: serde_json::from_str::<Told>(line)?.event }
    } else {
        let mut members: Map<String, Value> = serde_json::from_str(line)?;
        members.remove("atMs");
        serde_json::from_value(Value::Object(members))?
    };
    Ok(Entry { at_ms, item })
}

/// What was said: text, or bytes that are none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Payload {
    /// UTF-8, its line end included.
    Text(String),
    /// Bytes, in Base64.
    Base64(String),
}

impl Payload {
    /// Takes what was said.
    pub fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(BASE64_STANDARD.encode(bytes)),
        }
    }

    /// The bytes; `None` if the Base64 is none.
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Text(text) => Some(text.as_bytes().into()),
            Self::Base64(text) => BASE64_STANDARD.decode(text).ok().map(Cow::Owned),
        }
    }
}

/// Why a line is no line of a recording.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the recording is not what it should be: {source}")]
pub struct ReadError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub source: serde_json::Error,
}

/// Reads a recording. Its last line may be missing its end: whoever wrote it may have been killed.
///
/// # Errors
/// When another line is none of a recording.
pub fn read(text: &str) -> Result<Vec<Entry>, ReadError> {
    let mut entries = Vec::new();
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    while let Some((at, line)) = lines.next() {
        match serde_json::from_str(line) {
            Ok(entry) => entries.push(entry),
            Err(source) if source.is_eof() && lines.peek().is_none() && at > 0 => break,
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
    fn a_recording_that_was_cut_short_is_read_up_to_there_and_a_wrong_line_is_named() {
        let good = r#"{"atMs":0,"kind":"in_end"}"#;
        assert_eq!(read(&format!("{good}\n{{\"atMs\":1,\"ki")).unwrap().len(), 1);
        assert_eq!(read(&format!("{good}\n\nno\n{good}")).unwrap_err().line, 3);
        assert!(read("no").is_err());
    }

    proptest::proptest! {
        #[test]
        fn whatever_was_said_is_read_back(bytes: Vec<u8>) {
            let line = serde_json::to_string(&Entry { at_ms: 0.0, item: RecordedItem::Out(Payload::new(&bytes)) }).unwrap();
            let entries = read(&line).unwrap();
            let RecordedItem::Out(said) = &entries[0].item else { panic!("{entries:?}") };
            proptest::prop_assert_eq!(said.bytes().unwrap().into_owned(), bytes);
        }
    }
}
