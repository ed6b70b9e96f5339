//! A JSON string that is decoded when its text is needed.
//!
//! An agent may print an answer of many megabytes three times: as deltas, as a message and in the result. Only one of them is
//! needed as text. The others are compared piece by piece, without another copy.

use std::borrow::Cow;
use std::iter;

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

/// A string within a line of JSON, with its quotes and escapes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonString<'a>(&'a str);

impl<'a> JsonString<'a> {
    /// Returns the string with this content, which has no escapes.
    pub(crate) fn without_escapes(content: &'a str) -> Self {
        Self(content)
    }

    /// Returns its text, borrowed from the line. `None`: it has escapes.
    pub(crate) fn borrowed(self) -> Option<&'a str> {
        memchr::memchr(b'\\', self.0.as_bytes()).is_none().then_some(self.0)
    }

    /// Returns its text in pieces. A piece without escapes borrows from the line.
    pub(crate) fn pieces(self) -> impl Iterator<Item = Cow<'a, str>> {
        let mut rest = self.0;
        iter::from_fn(move || {
            let plain = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
            let length = if plain > 0 { plain } else { escapes(rest) };
            let (piece, after) = rest.split_at_checked(length).filter(|_| length > 0)?;
            rest = after;
            Some(if plain > 0 { piece.into() } else { decoded(piece).into() })
        })
    }

    /// Returns its text.
    pub(crate) fn to_text(self) -> String {
        let mut text = String::with_capacity(self.0.len());
        text.extend(self.pieces());
        text
    }

    /// Whether the text is empty.
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the number of bytes of the escapes at the start. Pairs of UTF-16 units stay together.
fn escapes(text: &str) -> usize {
    let mut length = 0;
    while let Some([b'\\', kind, ..]) = text.as_bytes().get(length..) {
        length += if *kind == b'u' { 6 } else { 2 };
    }
    length
}

/// Decodes escapes. The line was parsed before, so they are valid.
fn decoded(escapes: &str) -> String {
    serde_json::from_str(&format!("\"{escapes}\"")).unwrap_or_else(|_| "\u{fffd}".to_owned())
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonString<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'a RawValue>::deserialize(deserializer)?.get();
        let content = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        content.map(Self).ok_or_else(|| de::Error::custom("expected a string"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(json: &str) -> String {
        serde_json::from_str::<JsonString<'_>>(json).unwrap().to_text()
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(text(r#""a\nb\"\\\u00e4\ud83d\udc4b \t\\n""#), "a\nb\"\\ä👋 \t\\n");
        assert_eq!(text(r#""""#), "");
        assert!(serde_json::from_str::<JsonString<'_>>("1").unwrap_err().to_string().contains("expected a string"));
        assert!(serde_json::from_str::<Option<JsonString<'_>>>("null").unwrap().is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_read_back(text: String, units: Vec<u16>) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<JsonString<'_>>(&json).unwrap().to_text(), text);
            let known = String::from_utf16_lossy(&units);
            let escaped: String = known.encode_utf16().fold(String::new(), |text, unit| format!("{text}\\u{unit:04x}"));
            let json = format!("\"{escaped}\"");
            prop_assert_eq!(serde_json::from_str::<JsonString<'_>>(&json).unwrap().to_text(), known);
        }

        #[test]
        fn any_bytes_are_read_like_a_string_or_rejected(json: String) {
            let read = serde_json::from_str::<JsonString<'_>>(&json).map(JsonString::to_text).ok();
            if let Ok(expected) = serde_json::from_str::<String>(&json) {
                prop_assert_eq!(read, Some(expected));
            }
        }
    }
}
