//! Parses a line of input as a session command.

use serde_json::Value;
use teamster::json;
use teamster::request::SessionCommand;
use teamster::text::without_bom;

/// The rejection of a line that is not a valid command, or of a command that cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) origin: Origin,
    pub(super) problem: String,
    /// Whether the same command may succeed later.
    pub(super) retryable: bool,
}

/// The origin of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The number of its line, from 1.
    pub(super) line: u64,
    /// The id that the sender has set.
    pub(super) id: Option<String>,
}

impl Origin {
    pub(super) fn reject(self, problem: impl Into<String>) -> Rejection {
        Rejection { origin: self, problem: problem.into(), retryable: false }
    }
}

/// Parses a line. Returns `None` for a blank one.
pub(super) fn parse(line: u64, bytes: &[u8]) -> Option<Result<(Origin, SessionCommand), Rejection>> {
    let mut origin = Origin { line, id: None };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if without_bom(text).trim().is_empty() => return None,
        Ok(text) => without_bom(text),
        Err(error) => {
            return Some(Err(origin.reject(format!("invalid UTF-8 at byte {}", error.valid_up_to() + 1))));
        }
    };
    let document = match json::parse(text) {
        Ok(document) => document,
        Err(error) => return Some(Err(origin.reject(syntax_error(&error)))),
    };
    let Value::Object(fields) = &document else {
        return Some(Err(origin.reject(r#"a command must be an object, such as {"type":"send","text":"Hello"}"#)));
    };
    let string = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    origin.id = string("id");
    if origin.id.is_none() && fields.contains_key("id") {
        return Some(Err(origin.reject("id must be a string")));
    }
    let kind = string("type").map(|kind| format!("{kind}: ")).unwrap_or_default();
    Some(match serde_json::from_value(document) {
        Ok(command) => Ok((origin, command)),
        Err(error) => Err(origin.reject(format!("{kind}{error}"))),
    })
}

/// Returns the message of a syntax error without the parser's line number. It is always 1 and could be mistaken for the
/// line of the input.
fn syntax_error(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    format!("invalid JSON: {} at byte {}", whole.strip_suffix(&place).unwrap_or(&whole), error.column())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn parsed(line: &[u8]) -> String {
        match parse(7, line) {
            None => "nothing".to_owned(),
            Some(Ok((origin, command))) => format!("{:?} {command:?}", origin.id),
            Some(Err(rejection)) => format!("{:?} {}", rejection.origin.id, rejection.problem),
        }
    }

    #[test]
    fn an_invalid_line_is_rejected_with_its_error_and_its_id() {
        let lines: [&[u8]; 14] = [
            b"",
            b" \t\r",
            b"hello",
            b"{\"type\":\"send\"",
            b"[1]",
            b"{\"type\":\"send\",\"text\":\"\xff\"}",
            br#"{"text":"a"}"#,
            br#"{"type":"stop","id":"a"}"#,
            br#"{"type":"send","id":"a"}"#,
            br#"{"type":"send","text":1,"id":"a"}"#,
            br#"{"type":"send","text":"a","id":7}"#,
            br#"{"type":"send","text":"a","attachments":[{"data":{"name":"a","data":"?"}}]}"#,
            br#"{"type":"set_permission_mode","mode":"all"}"#,
            br#"{"type":"interrupt","now":true}"#,
        ];
        assert_snapshot!(lines.map(parsed).join("\n"), @r#"
        nothing
        nothing
        None invalid JSON: expected value at byte 1
        None invalid JSON: EOF while parsing an object at byte 14
        None a command must be an object, such as {"type":"send","text":"Hello"}
        None invalid UTF-8 at byte 24
        None missing field `type`
        Some("a") stop: unknown variant `stop`, expected one of `send`, `interrupt`, `answer`, `set_model`, `set_permission_mode`, `close`
        Some("a") send: missing field `text`
        Some("a") send: invalid type: integer `1`, expected a string
        None id must be a string
        None send: data is not base64: Invalid symbol 63, offset 0.
        None set_permission_mode: unknown variant `all`, expected one of `read-only`, `ask`, `edit`, `full`
        None interrupt: unknown field `now`, expected `turnId` or `id`
        "#);
    }

    #[test]
    fn a_valid_line_is_a_command() {
        assert_eq!(
            parsed(br#"{"type":"send","text":"a","id":"1"}"#),
            r#"Some("1") Send { text: "a", attachments: [], now: false, id: Some("1") }"#
        );
        assert_eq!(parsed(b"{\"type\":\"close\"}\r"), "None Close { id: None }");
        assert_eq!(parsed(b"\xef\xbb\xbf{\"type\":\"close\"}"), "None Close { id: None }");
        assert_eq!(parsed(b"\xef\xbb\xbf"), "nothing");
    }

    proptest! {
        #[test]
        fn parsing_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            _ = parse(1, &bytes);
        }
    }

    #[test]
    fn a_command_with_a_duplicate_field_is_rejected() {
        let line = br#"{"type":"answer","requestId":"r","decision":"deny","decision":"allow"}"#;
        assert!(parsed(line).contains("duplicate name"), "{}", parsed(line));
    }
}
