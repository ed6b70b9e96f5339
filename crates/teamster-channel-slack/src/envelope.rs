//! The messages of Socket Mode. Unknown fields are ignored.

use serde::Deserialize;
use serde_json::{Value, json};

/// What the service sends.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// The connection is ready.
    Hello(Hello),
    /// The connection will end.
    Disconnect { reason: String },
    /// Something happened. It must be acknowledged.
    Envelope(Envelope),
    /// Nothing for the channel.
    Other,
}

/// The first message of a connection.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Hello {
    /// The number of connections of the app, with this one.
    pub(crate) num_connections: Option<u32>,
    #[serde(default)]
    pub(crate) connection_info: ConnectionInfo,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ConnectionInfo {
    #[serde(default)]
    pub(crate) app_id: String,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Envelope {
    #[serde(default)]
    pub(crate) envelope_id: String,
    /// `events_api`, `interactive` or `slash_commands`.
    #[serde(default)]
    pub(crate) r#type: String,
    #[serde(default)]
    pub(crate) payload: Value,
    /// Whether the acknowledgment may contain an answer.
    #[serde(default)]
    pub(crate) accepts_response_payload: bool,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    reason: String,
}

/// Reads a frame. One of an unknown form is none for the channel; if it has an id, it is acknowledged, since it would come again.
pub(crate) fn read(text: &str) -> Frame {
    let Ok(head) = serde_json::from_str::<Head>(text) else { return Frame::Other };
    match head.r#type.as_str() {
        "hello" => Frame::Hello(serde_json::from_str(text).unwrap_or_default()),
        "disconnect" => Frame::Disconnect { reason: head.reason },
        _ => match serde_json::from_str::<Envelope>(text) {
            Ok(envelope) if !envelope.envelope_id.is_empty() => Frame::Envelope(envelope),
            _ => Frame::Other,
        },
    }
}

/// Returns the acknowledgment of an envelope.
pub(crate) fn acknowledgment(envelope_id: &str, payload: Option<&Value>) -> String {
    match payload {
        Some(payload) => json!({"envelope_id": envelope_id, "payload": payload}).to_string(),
        None => json!({"envelope_id": envelope_id}).to_string(),
    }
}

impl Envelope {
    /// Returns what is the same for each delivery of the envelope's content.
    pub(crate) fn key(&self) -> String {
        let text = |name: &str| self.payload.get(name).and_then(Value::as_str);
        let key = match self.r#type.as_str() {
            "events_api" => text("event_id"),
            _ => text("trigger_id"),
        };
        key.filter(|key| !key.is_empty()).unwrap_or(&self.envelope_id).to_owned()
    }

    /// Returns when it happened, in seconds with six decimals.
    pub(crate) fn time(&self) -> &str {
        let text = |pointer: &str| self.payload.pointer(pointer).and_then(Value::as_str);
        text("/event/event_ts").or_else(|| text("/event/ts")).unwrap_or_default()
    }

    /// Returns the chat whose messages must stay in order.
    pub(crate) fn lane(&self) -> Option<&str> {
        if self.r#type != "events_api" {
            return None;
        }
        self.payload.pointer("/event/channel").and_then(Value::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_what_the_documentation_has() {
        let hello =
            r#"{"type":"hello","num_connections":2,"connection_info":{"app_id":"A1"},"debug_info":{"host":"x"}}"#;
        let Frame::Hello(hello) = read(hello) else { panic!() };
        assert_eq!((hello.num_connections, hello.connection_info.app_id.as_str()), (Some(2), "A1"));
        let Frame::Disconnect { reason } = read(r#"{"type":"disconnect","reason":"warning"}"#) else { panic!() };
        assert_eq!(reason, "warning");
        let event = r#"{"type":"events_api","envelope_id":"e1","retry_attempt":1,"accepts_response_payload":false,
            "payload":{"event_id":"Ev1","event":{"type":"message","channel":"C1"}}}"#;
        let Frame::Envelope(envelope) = read(event) else { panic!() };
        assert_eq!((envelope.key().as_str(), envelope.lane()), ("Ev1", Some("C1")));
    }

    #[test]
    fn a_frame_of_an_unknown_form_is_no_cause_for_an_end() {
        for text in ["", "5", "[]", "{}", r#"{"type":7}"#, r#"{"type":"events_api"}"#, r#"{"type":"new"}"#] {
            assert!(matches!(read(text), Frame::Other), "{text}");
        }
        let Frame::Envelope(unknown) = read(r#"{"type":"new","envelope_id":"e","payload":[]}"#) else { panic!() };
        assert_eq!((unknown.key().as_str(), unknown.lane()), ("e", None));
    }
}
