//! A line of input as a command, or why it is none.

use serde_json::Value;
use teamster::json;
use teamster::request::SessionCommand;

/// A line that is no command, or a command that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) origin: Origin,
    pub(super) problem: String,
    /// Whether the same command may be good in a moment.
    pub(super) passes: bool,
}

/// Where a command came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The number of its line, from 1.
    pub(super) line: u64,
    /// What its sender calls it.
    pub(super) id: Option<String>,
}

impl Origin {
    pub(super) fn refuse(self, problem: impl Into<String>) -> Refusal {
        Refusal { origin: self, problem: problem.into(), passes: false }
    }
}

/// Reads a line; `None` for one on which nothing stands.
pub(super) fn read(line: u64, bytes: &[u8]) -> Option<Result<(Origin, SessionCommand), Refusal>> {
    let mut origin = Origin { line, id: None };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => return None,
        Ok(text) => text,
        Err(error) => {
            return Some(Err(origin.refuse(format!("it is not UTF-8: byte {} is wrong", error.valid_up_to() + 1))));
        }
    };
    let document = match json::parse(text) {
        Ok(document) => document,
        Err(error) => return Some(Err(origin.refuse(not_json(&error)))),
    };
    let Value::Object(fields) = &document else {
        return Some(Err(origin.refuse(r#"a command is an object, such as {"type":"send","text":"Hello"}"#)));
    };
    let word = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    origin.id = word("id");
    if origin.id.is_none() && fields.contains_key("id") {
        return Some(Err(origin.refuse("id is not a string")));
    }
    let kind = word("type").map(|kind| format!("{kind}: ")).unwrap_or_default();
    Some(match serde_json::from_value(document) {
        Ok(command) => Ok((origin, command)),
        Err(error) => Err(origin.refuse(format!("{kind}{error}"))),
    })
}

/// The parser's own line number is always 1, and would be taken for that of the input.
fn not_json(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    format!("it is not JSON: {} at byte {}", whole.strip_suffix(&place).unwrap_or(&whole), error.column())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn said(line: &[u8]) -> String {
        match read(7, line) {
            None => "nothing".to_owned(),
            Some(Ok((origin, command))) => format!("{:?} {command:?}", origin.id),
            Some(Err(refusal)) => format!("{:?} {}", refusal.origin.id, refusal.problem),
        }
    }

    #[test]
    fn a_wrong_line_is_told_with_what_is_wrong_and_the_id_if_it_has_one() {
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
        assert_snapshot!(lines.map(said).join("\n"), @r#"
        nothing
        nothing
        None it is not JSON: expected value at byte 1
        None it is not JSON: EOF while parsing an object at byte 14
        None a command is an object, such as {"type":"send","text":"Hello"}
        None it is not UTF-8: byte 24 is wrong
        None missing field `type`
        Some("a") stop: unknown variant `stop`, expected one of `send`, `interrupt`, `answer`, `set_model`, `set_permission_mode`, `close`
        Some("a") send: missing field `text`
        Some("a") send: invalid type: integer `1`, expected a string
        None id is not a string
        None send: data is not base64: Invalid symbol 63, offset 0.
        None set_permission_mode: unknown variant `all`, expected one of `read-only`, `ask`, `edit`, `full`
        None interrupt: unknown field `now`, expected `turnId` or `id`
        "#);
    }

    #[test]
    fn a_good_line_is_a_command() {
        assert_eq!(
            said(br#"{"type":"send","text":"a","id":"1"}"#),
            r#"Some("1") Send { text: "a", attachments: [], now: false, id: Some("1") }"#
        );
        assert_eq!(said(b"{\"type\":\"close\"}\r"), "None Close { id: None }");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_command_a_refusal_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            _ = read(1, &bytes);
        }
    }

    #[test]
    fn a_command_with_a_name_twice_is_refused() {
        let line = br#"{"type":"answer","requestId":"r","decision":"deny","decision":"allow"}"#;
        assert!(said(line).contains("stands twice"), "{}", said(line));
    }
}
