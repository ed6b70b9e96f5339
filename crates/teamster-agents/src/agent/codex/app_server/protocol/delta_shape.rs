//! A delta with which later ones are compared.

use super::super::turn::ContentKind;
use super::super::wire::{DeltaLine, Origin};
use crate::agent::line_shape::LineShape;

/// A delta of a message. Most deltas differ from the one before only in their text and their time.
pub(super) struct DeltaShape {
    pub(super) shape: LineShape,
    pub(super) kind: ContentKind,
    pub(super) thread_id: String,
    pub(super) turn_id: String,
    pub(super) item_id: String,
    pub(super) summary_index: u64,
}

impl DeltaShape {
    /// Returns the shape of a line. `None`: its text has escapes, or it names no turn.
    pub(super) fn of(line: &str, kind: ContentKind, origin: &Origin<'_>, delta: &DeltaLine<'_>) -> Option<Self> {
        Some(Self {
            shape: LineShape::of(line, &delta.delta, Some("emittedAtMs"))?,
            kind,
            thread_id: origin.thread_id.as_deref()?.to_owned(),
            turn_id: origin.turn_id.as_deref()?.to_owned(),
            item_id: delta.item_id.to_string(),
            summary_index: delta.summary_index,
        })
    }
}
