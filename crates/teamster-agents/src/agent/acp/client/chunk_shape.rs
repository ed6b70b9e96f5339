//! A chunk of a message with which later ones are compared.

use crate::agent::acp::messages::ContentKind;
use crate::agent::line_shape::LineShape;

/// A chunk of a message. Most chunks differ from the one before only in their text.
pub(super) struct ChunkShape {
    pub(super) shape: LineShape,
    pub(super) kind: ContentKind,
    pub(super) session_id: String,
    pub(super) message_id: Option<String>,
}

impl ChunkShape {
    /// Returns the shape of a line. `None`: its text has escapes.
    pub(super) fn of(
        line: &str,
        text: &str,
        kind: ContentKind,
        session_id: &str,
        message_id: Option<&str>,
    ) -> Option<Self> {
        let shape = LineShape::of(line, text, None)?;
        Some(Self { shape, kind, session_id: session_id.to_owned(), message_id: message_id.map(str::to_owned) })
    }
}
