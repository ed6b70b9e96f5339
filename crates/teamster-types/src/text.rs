//! Text from untrusted sources: an agent, its model, an MCP server, or the author of a file.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

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
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UntrustedText(String);

impl UntrustedText {
    /// Returns the text, unchanged.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text as an owned string, unchanged.
    pub fn into_string(self) -> String {
        self.0
    }

    /// Returns the text with escapes, for display: see [`Escaped`].
    pub fn escaped(&self) -> Escaped<'_> {
        Escaped(&self.0)
    }

    /// Appends text.
    pub fn push_str(&mut self, more: &str) {
        self.0.push_str(more);
    }
}

impl Deref for UntrustedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for UntrustedText {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for UntrustedText {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<String> for UntrustedText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for UntrustedText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<std::borrow::Cow<'_, str>> for UntrustedText {
    fn from(text: std::borrow::Cow<'_, str>) -> Self {
        Self(text.into_owned())
    }
}

impl FromIterator<UntrustedText> for UntrustedText {
    fn from_iter<I: IntoIterator<Item = UntrustedText>>(pieces: I) -> Self {
        Self(pieces.into_iter().map(|piece| piece.0).collect())
    }
}

impl From<&String> for UntrustedText {
    fn from(text: &String) -> Self {
        Self(text.clone())
    }
}

impl From<UntrustedText> for String {
    fn from(text: UntrustedText) -> Self {
        text.0
    }
}

impl PartialEq<str> for UntrustedText {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for UntrustedText {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<String> for UntrustedText {
    fn eq(&self, other: &String) -> bool {
        self.0 == *other
    }
}

impl PartialEq<UntrustedText> for str {
    fn eq(&self, other: &UntrustedText) -> bool {
        self == other.0
    }
}

impl PartialEq<UntrustedText> for &str {
    fn eq(&self, other: &UntrustedText) -> bool {
        *self == other.0
    }
}

impl PartialEq<UntrustedText> for String {
    fn eq(&self, other: &UntrustedText) -> bool {
        *self == other.0
    }
}

impl fmt::Debug for UntrustedText {
    /// Writes the text with quotes and escapes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
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
