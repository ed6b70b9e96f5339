//! The deltas of the Messages API's stream.

use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::agent::line::Text;

/// What an event of the stream changes.
#[derive(Debug, Default)]
pub(in crate::agent::claude) struct StreamDelta<'a> {
    /// The content that it appends.
    pub(in crate::agent::claude) content: Option<(DeltaKind, Text<'a>)>,
    pub(in crate::agent::claude) stop_reason: Option<Text<'a>>,
}

/// What a delta appends to. If a delta has several of these fields, the first kind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(in crate::agent::claude) enum DeltaKind {
    Text,
    Thinking,
    InputJson,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum DeltaField {
    Text,
    Thinking,
    PartialJson,
    StopReason,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for StreamDelta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Fields<'a> {
            type Value = StreamDelta<'a>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a delta")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<StreamDelta<'a>, A::Error> {
                let mut delta = StreamDelta::default();
                while let Some(field) = fields.next_key()? {
                    let kind = match field {
                        DeltaField::Text => DeltaKind::Text,
                        DeltaField::Thinking => DeltaKind::Thinking,
                        DeltaField::PartialJson => DeltaKind::InputJson,
                        DeltaField::StopReason => {
                            delta.stop_reason = fields.next_value()?;
                            continue;
                        }
                        DeltaField::Other => {
                            fields.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    // Some programs write all fields, most of them as null.
                    let text = fields.next_value::<Option<Text<'a>>>()?;
                    if let Some(text) = text
                        && delta.content.as_ref().is_none_or(|(known, _)| kind < *known)
                    {
                        delta.content = Some((kind, text));
                    }
                }
                Ok(delta)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}
