//! Deserialization of events.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::Event;
use crate::json::RawJson;

#[derive(Deserialize)]
struct Tag {
    #[serde(rename = "type")]
    name: String,
}

impl<'de> Deserialize<'de> for Event {
    /// Requires a deserializer of `serde_json`, since the inputs of tools and events of unknown types keep their exact text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        read(&raw).map_err(D::Error::custom)
    }
}

fn read(raw: &RawJson) -> serde_json::Result<Event> {
    fn payload<T: DeserializeOwned>(raw: &RawJson, event: impl FnOnce(T) -> Event) -> serde_json::Result<Event> {
        raw.read().map(event)
    }
    match raw.read::<Tag>()?.name.as_str() {
        "init" => payload(raw, Event::Init),
        "text" => payload(raw, Event::Text),
        "thinking" => payload(raw, Event::Thinking),
        "retract" => payload(raw, Event::Retract),
        "tool_use" => payload(raw, Event::ToolUse),
        "tool_output" => payload(raw, Event::ToolOutput),
        "tool_result" => payload(raw, Event::ToolResult),
        "permission_request" => payload(raw, Event::PermissionRequest),
        "permission_answered" => payload(raw, Event::PermissionAnswered),
        "question" => payload(raw, Event::Question),
        "plan" => payload(raw, Event::Plan),
        "queued" => payload(raw, Event::Queued),
        "usage" => payload(raw, Event::Usage),
        "rate_limit" => payload(raw, Event::RateLimit),
        "warning" => payload(raw, Event::Warning),
        "error" => payload(raw, Event::Error),
        "done" => payload(raw, Event::Done),
        _ => Ok(Event::Unknown(raw.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_an_unknown_type_survives_reading_and_writing() {
        let text = r#"{"type":"from_the_future","depth":1e400}"#;
        let event: Event = serde_json::from_str(text).unwrap();
        assert!(matches!(event, Event::Unknown(_)), "{event:?}");
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }

    #[test]
    fn invalid_events_are_errors() {
        for text in ["{}", "[]", r#"{"type":7}"#, r#"{"type":"text"}"#] {
            assert!(serde_json::from_str::<Event>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_input_of_a_tool_keeps_its_digits() {
        let text =
            r#"{"type":"tool_use","toolId":"1","toolName":"t","input":{"id":18446744073709551617},"kind":"mcp"}"#;
        let event: Event = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }
}
