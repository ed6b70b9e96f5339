//! Recognizes a line that differs from an earlier one only in its text, and possibly in its id.
//!
//! An answer is a long sequence of such lines: most bytes of a delta are those of the delta before it. To compare them costs a
//! fraction of reading the line as JSON.
//!
//! Invariant: a recognized line is valid JSON. It has the value of the earlier line, with another text, another id, or another
//! value of the key that the reader ignores. A string with escapes is not recognized.

use std::ops::Range;

/// The maximum size of the bytes that lines have in common.
const MAX_COMMON_BYTES: usize = 4096;

/// What lines have in common: all bytes but those of their text, of their id and of the ignored value.
#[derive(Debug)]
pub(crate) struct LineShape {
    /// The bytes before each part that varies, with the opening quote of a string.
    common: Vec<(Vec<u8>, Varying)>,
    /// The bytes after the last one.
    end: Vec<u8>,
}

/// A part that varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Varying {
    /// The content of the string that is the text.
    Text,
    /// The content of the string that is the id.
    Id,
    /// The content of an ignored string.
    IgnoredString,
    /// The digits of an ignored number.
    IgnoredNumber,
}

impl LineShape {
    /// Returns the shape of a line that is valid JSON. `text` is the content of one of its strings, borrowed from it. `ignored`
    /// is a key whose value the reader of the line ignores wherever the key is.
    ///
    /// `None`: the text is not borrowed from the line, or too much of the line is not text.
    pub(crate) fn of(line: &str, text: &str, ignored: Option<&str>) -> Option<Self> {
        let text = content_of(line, text)?;
        let ignored = ignored.and_then(|key| value_of(line, key));
        let ignored = ignored.filter(|(other, _)| other.end < text.start || text.end < other.start);
        Self::from_parts(line, ignored.into_iter().chain([(text, Varying::Text)]).collect())
    }

    /// Returns the shape of a line that is valid JSON, whose text and id vary. Both are contents of two of its strings, borrowed
    /// from it.
    ///
    /// `None`: they are not, or too much of the line is neither.
    pub(crate) fn with_id(line: &str, text: &str, id: &str) -> Option<Self> {
        let (text, id) = (content_of(line, text)?, content_of(line, id)?);
        let are_apart = id.end < text.start || text.end < id.start;
        are_apart.then(|| Self::from_parts(line, vec![(text, Varying::Text), (id, Varying::Id)]))?
    }

    fn from_parts(line: &str, mut parts: Vec<(Range<usize>, Varying)>) -> Option<Self> {
        parts.sort_unstable_by_key(|(part, _)| part.start);
        let varying: usize = parts.iter().map(|(part, _)| part.len()).sum();
        if line.len().checked_sub(varying)? > MAX_COMMON_BYTES {
            return None;
        }
        let (mut common, mut from) = (Vec::new(), 0);
        for (part, varying) in parts {
            common.push((line.get(from..part.start)?.into(), varying));
            from = part.end;
        }
        Some(Self { common, end: line.get(from..)?.into() })
    }

    /// Returns the text of a line. `None`: the line has another shape, or one of its strings has escapes.
    pub(crate) fn text<'a>(&self, line: &'a [u8]) -> Option<&'a str> {
        self.read(line).map(|(text, _)| text)
    }

    /// Returns the text and the id of a line. `None`: as for [`text`](Self::text), or the shape [has no id](Self::with_id).
    pub(crate) fn text_and_id<'a>(&self, line: &'a [u8]) -> Option<(&'a str, &'a str)> {
        let (text, id) = self.read(line)?;
        Some((text, id?))
    }

    fn read<'a>(&self, line: &'a [u8]) -> Option<(&'a str, Option<&'a str>)> {
        let (mut rest, mut text, mut id) = (line, None, None);
        for (common, varying) in &self.common {
            rest = rest.strip_prefix(common.as_slice())?;
            rest = match varying {
                Varying::IgnoredNumber => number(rest)?.1,
                Varying::IgnoredString => string(rest)?.1,
                Varying::Text | Varying::Id => {
                    let (content, after) = string(rest)?;
                    *(if *varying == Varying::Id { &mut id } else { &mut text }) = Some(content);
                    after
                }
            };
        }
        text.filter(|_| rest == self.end).map(|text| (text, id))
    }
}

/// Returns where the content of a string is that was borrowed from the line. `None`: it was not.
fn content_of(line: &str, content: &str) -> Option<Range<usize>> {
    let start = content.as_ptr().addr().checked_sub(line.as_ptr().addr())?;
    let range = start..start + content.len();
    let is_string = line.get(..range.start)?.ends_with('"') && line.get(range.end..)?.starts_with('"');
    is_string.then_some(range)
}

/// Returns the value of a key: a string without escapes, or a number.
///
/// Inside a string, a quote follows a backslash. So the quotes that are found are those of a key and of its value.
fn value_of(line: &str, key: &str) -> Option<(Range<usize>, Varying)> {
    let pattern = format!("\"{key}\":");
    let start = line.find(&pattern)? + pattern.len();
    let value = line.as_bytes().get(start..)?;
    if let Some(value) = value.strip_prefix(b"\"") {
        return Some((start + 1..start + 1 + string(value)?.0.len(), Varying::IgnoredString));
    }
    Some((start..start + number(value)?.0.len(), Varying::IgnoredNumber))
}

/// Splits the content of a JSON string without escapes off, behind its opening quote (RFC 8259, section 7). The rest starts with
/// the closing quote.
fn string(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr::memchr2(b'"', b'\\', bytes)?;
    let (content, rest) = bytes.split_at_checked(end)?;
    if rest.first() != Some(&b'"') || content.iter().any(|byte| *byte < b' ') {
        return None;
    }
    Some((std::str::from_utf8(content).ok()?, rest))
}

/// Splits the digits of a JSON number off (RFC 8259, section 6). The rest starts with another character.
fn number(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = bytes.split_at_checked(end)?;
    let has_fraction = matches!(rest.first(), Some(b'.' | b'e' | b'E'));
    (matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && !has_fraction).then_some((digits, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const FIRST: &str = r#"{"uuid":"u-1","event":{"delta":{"text":"some words","x":"\"uuid\":\""}},"n":null}"#;

    /// Returns the text of a line, borrowed from it.
    fn text_of(line: &str) -> &str {
        line.split_once(r#""text":""#).unwrap().1.split('"').next().unwrap()
    }

    /// Returns the shape of the first line.
    fn shape() -> LineShape {
        LineShape::of(FIRST, text_of(FIRST), Some("uuid")).unwrap()
    }

    fn line(uuid: &Value, text: &Value) -> String {
        format!(r#"{{"uuid":{uuid},"event":{{"delta":{{"text":{text},"x":"\"uuid\":\""}}}},"n":null}}"#)
    }

    #[test]
    fn a_line_with_another_text_and_another_ignored_string_is_recognized() {
        let shape = shape();
        for text in ["", "more", "é 👋", "a \u{7f} b"] {
            assert_eq!(shape.text(line(&json!("u-2"), &json!(text)).as_bytes()), Some(text));
        }
    }

    #[test]
    fn a_line_that_differs_elsewhere_or_has_escapes_is_not_recognized() {
        let shape = shape();
        for text in [json!("a\nb"), json!("\""), json!("\\"), json!(null), json!(["a"])] {
            assert_eq!(shape.text(line(&json!("u"), &text).as_bytes()), None, "{text}");
        }
        assert_eq!(shape.text(line(&json!("a\tb"), &json!("a")).as_bytes()), None);
        let valid = line(&json!("u"), &json!("a"));
        let cut = valid.strip_suffix('}').unwrap();
        let other = valid.replace("null", "true");
        for other in [cut, &format!("{valid} "), &format!(" {valid}"), &other, ""] {
            assert_eq!(shape.text(other.as_bytes()), None, "{other}");
        }
        let raw_control = valid.replace("\"a\"", "\"a\u{1}\"");
        assert_eq!(shape.text(raw_control.as_bytes()), None);
        let not_utf8 = [valid.as_bytes().split_at(10).0, b"\xff", valid.as_bytes().split_at(10).1].concat();
        assert_eq!(shape.text(&not_utf8), None);
    }

    #[test]
    fn an_ignored_number_is_one_without_a_fraction() {
        let first = r#"{"text":"a","at":17}"#;
        let shape = LineShape::of(first, text_of(first), Some("at")).unwrap();
        for (number, expected) in
            [("0", true), ("18", true), ("01", false), ("", false), ("1.5", false), ("1e5", false), ("-1", false)]
        {
            let line = format!(r#"{{"text":"b","at":{number}}}"#);
            assert_eq!(shape.text(line.as_bytes()), expected.then_some("b"), "{number}");
        }
    }

    #[test]
    fn a_line_with_another_id_is_recognized_if_its_shape_has_an_id() {
        let first = r#"{"id":"m_1","kind":"message","text":"a"}"#;
        let id = first.split('"').nth(3).unwrap();
        let shape = LineShape::with_id(first, text_of(first), id).unwrap();
        let line = |id: &str, kind: &str, text: &str| format!(r#"{{"id":"{id}","kind":"{kind}","text":"{text}"}}"#);
        for (id, text) in [("m_2", "b"), ("", "é"), ("m_10000", "")] {
            assert_eq!(shape.text_and_id(line(id, "message", text).as_bytes()), Some((text, id)));
        }
        for other in [line("m_2", "thought", "b"), line(r"m\n", "message", "b"), line("m_2", "message", r"\u0041")] {
            assert_eq!(shape.text_and_id(other.as_bytes()), None, "{other}");
        }
        assert_eq!(self::shape().text_and_id(FIRST.as_bytes()), None);
        assert!(LineShape::with_id(first, id, id).is_none());
    }

    #[test]
    fn a_text_that_is_not_borrowed_from_the_line_or_a_large_line_has_no_shape() {
        assert!(LineShape::of(FIRST, text_of(&String::from(FIRST)), None).is_none());
        let large = format!(r#"{{"text":"a","other":"{}"}}"#, "x".repeat(MAX_COMMON_BYTES));
        assert!(LineShape::of(&large, text_of(&large), None).is_none());
    }

    proptest! {
        #[test]
        fn a_recognized_line_has_the_value_of_the_first_one_with_its_strings(
            at in 0..FIRST.len(), removed in 0..6_usize, inserted in r#"[ -~\n"\\u\x00-\x1f]{0,6}"#,
        ) {
            let mut bytes = FIRST.as_bytes().to_vec();
            bytes.splice(at..(at + removed).min(FIRST.len()), inserted.bytes());
            if let Some(text) = shape().text(&bytes) {
                let found: Value = serde_json::from_slice(&bytes).unwrap();
                let mut expected: Value = serde_json::from_str(FIRST).unwrap();
                prop_assert_eq!(&found["event"]["delta"]["text"], text);
                expected["event"]["delta"]["text"] = text.into();
                expected["uuid"] = found["uuid"].clone();
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn a_text_is_recognized_as_it_is_read(text: String, uuid: String) {
            let line = line(&json!(uuid), &json!(text));
            let has_escapes = |text: &str| json!(text).to_string().contains('\\');
            let expected = (!has_escapes(&text) && !has_escapes(&uuid)).then_some(text.as_str());
            prop_assert_eq!(shape().text(line.as_bytes()), expected);
        }
    }
}
