//! The two kinds of text that a model streams.

use teamster_types::event::{Delta, Event};

/// The kind of a streamed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentKind {
    /// The answer.
    Text,
    /// The reasoning that the agent shows.
    Thinking,
}

impl ContentKind {
    /// Returns the event of a delta.
    pub(super) fn event(self, delta: Delta) -> Event {
        match self {
            Self::Text => Event::Text(delta),
            Self::Thinking => Event::Thinking(delta),
        }
    }
}
