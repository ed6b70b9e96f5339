//! Text from untrusted sources: an agent, its model, an MCP server, or the author of a file.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// What separates the messages of an agent where they are joined to one text: a blank line.
pub const MESSAGE_SEPARATOR: &str = "\n\n";

/// Returns a text without the byte order mark (U+FEFF) at its start, which some editors and shells write. It is not part of the
/// text.
pub fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Text that an agent, its model, an MCP server or a file's author controls.
///
/// It may contain terminal escape sequences, line breaks, and characters that change the order of text. It dereferences to
/// `str`, but has no `Display`, so that it is not written to a terminal or a log by accident. To display it, use
/// [`escaped`](Self::escaped); to process it as data, use [`as_str`](Self::as_str).
///
/// ```
/// use teamster_types::text::UntrustedText;
///
/// let name = UntrustedText::from("ls\u{1b}[2J\u{202e}");
/// assert_eq!(name.escaped().to_string(), "ls\\u{1b}[2J\\u{202e}");
/// assert_eq!(name.as_str().len(), 9);
/// ```
///
/// Formatting it directly does not compile:
///
/// ```compile_fail
/// let name = teamster_types::text::UntrustedText::from("ls");
/// println!("{name}");
/// ```
#[derive(Clone, Default, Deserialize)]
#[serde(from = "String")]
pub struct UntrustedText(Content);

/// Where a text is stored.
#[derive(Clone)]
enum Content {
    Owned(String),
    /// The end of a text that another value has too, from this byte on.
    Shared(Arc<String>, usize),
}

impl Default for Content {
    fn default() -> Self {
        Self::Owned(String::new())
    }
}

impl UntrustedText {
    /// Returns a text and its end, from the byte `start` on. Both share their memory. The end is empty if no character starts
    /// at `start`.
    pub fn with_end(text: String, start: usize) -> (Self, Self) {
        if text.get(start..).is_none_or(str::is_empty) {
            return (text.into(), Self::default());
        }
        let text = Arc::new(text);
        (Self(Content::Shared(Arc::clone(&text), 0)), Self(Content::Shared(text, start)))
    }

    /// Returns the text, unchanged.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Content::Owned(text) => text,
            Content::Shared(text, start) => text.get(*start..).unwrap_or_default(),
        }
    }

    /// Returns the text as an owned string, unchanged.
    pub fn into_string(self) -> String {
        match self.0 {
            Content::Owned(text) => text,
            Content::Shared(text, 0) => Arc::unwrap_or_clone(text),
            Content::Shared(text, start) => text.get(start..).unwrap_or_default().to_owned(),
        }
    }

    /// Returns the text with escapes, for display: see [`Escaped`].
    pub fn escaped(&self) -> Escaped<'_> {
        Escaped(self)
    }

    /// Appends text.
    pub fn push_str(&mut self, more: &str) {
        let mut text = std::mem::take(self).into_string();
        text.push_str(more);
        *self = text.into();
    }
}

impl Serialize for UntrustedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl Deref for UntrustedText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for UntrustedText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for UntrustedText {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for UntrustedText {
    fn from(text: String) -> Self {
        Self(Content::Owned(text))
    }
}

impl From<&str> for UntrustedText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<std::borrow::Cow<'_, str>> for UntrustedText {
    fn from(text: std::borrow::Cow<'_, str>) -> Self {
        text.into_owned().into()
    }
}

impl FromIterator<UntrustedText> for UntrustedText {
    fn from_iter<I: IntoIterator<Item = UntrustedText>>(pieces: I) -> Self {
        pieces.into_iter().map(Self::into_string).collect::<String>().into()
    }
}

impl From<&String> for UntrustedText {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<UntrustedText> for String {
    fn from(text: UntrustedText) -> Self {
        text.into_string()
    }
}

impl PartialEq for UntrustedText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for UntrustedText {}

impl PartialOrd for UntrustedText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for UntrustedText {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for UntrustedText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialEq<str> for UntrustedText {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for UntrustedText {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for UntrustedText {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<UntrustedText> for str {
    fn eq(&self, other: &UntrustedText) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<UntrustedText> for &str {
    fn eq(&self, other: &UntrustedText) -> bool {
        *self == other.as_str()
    }
}

impl PartialEq<UntrustedText> for String {
    fn eq(&self, other: &UntrustedText) -> bool {
        *self == other.as_str()
    }
}

impl fmt::Debug for UntrustedText {
    /// Writes the text with quotes and escapes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for UntrustedText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UntrustedText".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// Untrusted text for display, on one line. Each character that is not printable is written as an escape (`\n`, `\u{1b}`,
/// `\u{202e}`), and no character is omitted.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;

        for character in self.0.chars() {
            match character {
                '"' | '\'' => formatter.write_char(character)?,
                _ => write!(formatter, "{}", character.escape_debug())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_and_its_end_share_their_memory_and_are_texts_like_others() {
        let (mut text, end) = UntrustedText::with_end("one two".to_owned(), 4);
        assert_eq!((text.as_str(), end.as_str()), ("one two", "two"));
        assert_eq!(text.as_ptr().wrapping_add(4), end.as_ptr());
        assert_eq!((end.clone(), serde_json::to_string(&end).unwrap()), ("two".into(), "\"two\"".to_owned()));
        text.push_str(" three");
        assert_eq!((text.into_string(), end.into_string()), ("one two three".to_owned(), "two".to_owned()));
    }

    #[test]
    fn an_end_that_does_not_exist_is_empty() {
        for start in [1, 2, 3] {
            let (text, end) = UntrustedText::with_end("ä".to_owned(), start);
            assert_eq!((text.as_str(), end.as_str()), ("ä", ""));
        }
    }

    #[test]
    fn a_text_is_no_larger_than_a_string() {
        assert_eq!(size_of::<UntrustedText>(), size_of::<String>());
    }
}
