//! A text with ranges.

/// A text and its formatting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formatted {
    /// The text. It is empty if the Markdown shows nothing.
    pub text: String,
    /// The formatting: sorted, nested properly, within the text.
    pub entities: Vec<Entity>,
}

/// A formatted range. Offset and length are in UTF-16 units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// How the range is shown.
    pub kind: EntityKind,
    /// Where the range starts.
    pub offset: usize,
    /// Its length.
    pub length: usize,
}

/// How a range is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityKind {
    /// Bold.
    Bold,
    /// Italic.
    Italic,
    /// Struck through.
    Strikethrough,
    /// A quote.
    Blockquote,
    /// Code in a line.
    Code,
    /// A block of code.
    Pre {
        /// The name of its language; empty if there is none.
        language: String,
    },
    /// A link.
    TextLink {
        /// An `http` or `https` URL.
        url: String,
    },
}

impl EntityKind {
    /// Returns whether the range can contain no other one.
    pub(super) const fn is_code(&self) -> bool {
        matches!(self, Self::Code | Self::Pre { .. })
    }

    /// Returns whether the range must not contain code.
    pub(super) const fn excludes_code(&self) -> bool {
        matches!(self, Self::Bold | Self::Italic | Self::Strikethrough)
    }
}

/// Returns whether a character is shown. Services remove or replace the others.
pub fn is_shown(character: char) -> bool {
    !character.is_control() || matches!(character, '\n' | '\t')
}

/// Returns the length in UTF-16 units.
pub fn utf16_length(text: &str) -> usize {
    text.encode_utf16().count()
}
