//! A text with entities.

use serde::Serialize;

/// A text and its formatting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Formatted {
    /// The text.
    pub(crate) text: String,
    /// The formatting: sorted, nested properly, within the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) entities: Vec<Entity>,
}

/// A formatted range. Offset and length are in UTF-16 units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entity {
    #[serde(flatten)]
    pub(crate) kind: EntityKind,
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// How a range is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum EntityKind {
    Bold,
    Italic,
    Strikethrough,
    Blockquote,
    Code,
    Pre {
        #[serde(skip_serializing_if = "String::is_empty")]
        language: String,
    },
    TextLink {
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

/// Returns whether a character is sent. The service removes or replaces the others.
pub(super) fn is_shown(character: char) -> bool {
    !character.is_control() || matches!(character, '\n' | '\t')
}

/// Returns the length as the service counts it.
pub(crate) fn utf16_length(text: &str) -> usize {
    text.encode_utf16().count()
}
