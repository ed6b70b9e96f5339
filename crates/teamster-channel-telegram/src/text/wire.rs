//! Entities as the Bot API has them.

use serde::Serialize;
use teamster_channel::{Entity, EntityKind};

/// An entity in a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WireEntity {
    #[serde(flatten)]
    kind: WireKind,
    offset: usize,
    length: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireKind {
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

impl WireEntity {
    /// Returns the entities of a call.
    pub(crate) fn all(entities: &[Entity]) -> Vec<Self> {
        let one = |entity: &Entity| Self { kind: kind(&entity.kind), offset: entity.offset, length: entity.length };
        entities.iter().map(one).collect()
    }
}

fn kind(kind: &EntityKind) -> WireKind {
    match kind.clone() {
        EntityKind::Bold => WireKind::Bold,
        EntityKind::Italic => WireKind::Italic,
        EntityKind::Strikethrough => WireKind::Strikethrough,
        EntityKind::Blockquote => WireKind::Blockquote,
        EntityKind::Code => WireKind::Code,
        EntityKind::Pre { language } => WireKind::Pre { language },
        EntityKind::TextLink { url } => WireKind::TextLink { url },
    }
}
