//! Reads lines of JSON. Invalid characters cost as little of the line as possible.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Reads a line as JSON.
///
/// Bytes that are not UTF-8 become U+FFFD, and so do lone surrogate escapes. A CLI written in JavaScript writes such escapes
/// if it cuts a string between two UTF-16 units; a strict parser would reject the whole line. They are replaced before the
/// line is parsed, since parts of it are parsed later.
pub(crate) fn with_json<R>(line: &[u8], read: impl FnOnce(&str) -> serde_json::Result<R>) -> Result<R, String> {
    // Most lines are valid, and this check is much faster than the search for invalid bytes.
    let text = std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed);
    read(&replace_lone_surrogates(&text)).map_err(|error| error.to_string())
}

/// Reads a line that is a JSON document or an array of documents. If one cannot be read, the others are still read. Returns
/// the first error.
pub(crate) fn each_json(line: &[u8], mut read: impl FnMut(&str) -> serde_json::Result<()>) -> Result<(), String> {
    with_json(line, |text| {
        if !text.trim_start().starts_with('[') {
            return read(text);
        }
        let documents: Vec<&RawValue> = serde_json::from_str(text)?;
        let mut outcome = Ok(());
        for document in documents {
            outcome = outcome.and(read(document.get()));
        }
        outcome
    })
}

/// Deserializes a value; an unexpected form gives the default.
pub(crate) fn if_readable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    // A `Value` would limit the depth and lose digits.
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Returns the start of a line, for a warning.
pub(crate) fn excerpt(line: &[u8]) -> String {
    let head = line.get(..400).unwrap_or(line);
    let text: String = String::from_utf8_lossy(head).chars().take(120).collect();
    if text.len() < line.len() { format!("{text}…") } else { text }
}

fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut rest = 0;
    while let Some(found) = text.as_bytes().get(rest..).and_then(|tail| memchr::memchr(b'\\', tail)) {
        let at = rest + found;
        match escape_unit(text, at) {
            Some(0xd800..=0xdbff) if matches!(escape_unit(text, at + 6), Some(0xdc00..=0xdfff)) => rest = at + 12,
            Some(0xd800..=0xdfff) => {
                let out = out.get_or_insert_with(String::new);
                out.push_str(text.get(copied..at).unwrap_or_default());
                out.push_str("\\ufffd");
                copied = at + 6;
                rest = copied;
            }
            _ => rest = at + 2,
        }
    }
    match out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(text.get(copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

/// Returns the UTF-16 unit of the escape that starts here: `\u` and four hexadecimal digits.
fn escape_unit(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

/// A string that borrows from the line if it contains no escapes. Unlike a bare `Cow`, it also does so inside an `Option`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<Text<'_>> for String {
    fn from(text: Text<'_>) -> Self {
        text.0.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[u8]) -> Result<String, String> {
        with_json(line, |text| serde_json::from_str::<String>(text))
    }

    #[test]
    fn a_lone_surrogate_costs_one_character_not_the_line() {
        assert_eq!(read(br#""a\ud83d b \udc4b \ud83d\udc4b \\ud83d""#).unwrap(), "a\u{fffd} b \u{fffd} 👋 \\ud83d");
    }

    #[test]
    fn bytes_that_are_not_utf8_cost_one_character_not_the_line() {
        assert_eq!(read(b"\"a\xffb\"").unwrap(), "a\u{fffd}b");
    }

    #[test]
    fn a_line_that_is_not_json_is_an_error() {
        assert!(read(b"Warning: \\ud800").is_err());
    }

    #[test]
    fn each_document_of_an_array_is_read_once_even_if_another_is_invalid() {
        let mut texts = Vec::new();
        let line = br#" ["a", 1, "b\ud83d", "c"]"#;
        let error = each_json(line, |text| serde_json::from_str(text).map(|text: String| texts.push(text)));
        assert_eq!(texts, ["a", "b\u{fffd}", "c"]);
        assert!(error.unwrap_err().contains("expected a string"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_rejected(line: Vec<u8>) {
            let _ = with_json(&line, |text| serde_json::from_str::<serde_json::Value>(text));
            let _ = excerpt(&line);
        }

        #[test]
        fn any_string_is_read_back_from_its_json(text: String) {
            let line = serde_json::to_vec(&text).unwrap();
            proptest::prop_assert_eq!(read(&line).unwrap(), text);
        }

        #[test]
        fn any_utf16_units_are_read_with_lone_ones_replaced(units: Vec<u16>) {
            let escapes = units.iter().fold(String::new(), |text, unit| format!("{text}\\u{unit:04x}"));
            let expected = String::from_utf16_lossy(&units);
            proptest::prop_assert_eq!(read(format!("\"{escapes}\"").as_bytes()).unwrap(), expected);
        }
    }
}
