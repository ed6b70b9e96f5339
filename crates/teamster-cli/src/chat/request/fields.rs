//! The fields of a call's input, as the agent wrote them.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::printable::{Printable, folded, printable};

/// The prefix of JSON text. Other text cannot imitate it, since its brackets are escaped there.
const JSON: &str = "⟦JSON⟧";

/// The fields of an object in their original order, including duplicate names.
pub(super) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Parses an input; `None` if it is not an object.
    pub(super) fn of(input: &str) -> Option<Self> {
        serde_json::from_str(input).ok()
    }

    /// Removes the only field with one of these names, if its value is a text.
    pub(super) fn take_text(&mut self, names: &[&str]) -> Option<String> {
        let mut found = self.0.iter().enumerate().filter(|(_, (name, _))| names.contains(&name.as_str()));
        let (Some((index, (_, value))), None) = (found.next(), found.next()) else { return None };
        let text = serde_json::from_str(value.get()).ok()?;
        self.0.remove(index);
        Some(text)
    }

    /// Removes the only field with this name, if its value has this type and is accepted.
    pub(super) fn take_parsed<T: DeserializeOwned>(
        &mut self,
        wanted: &str,
        accepts: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        let mut found = self.0.iter().enumerate().filter(|(_, (name, _))| name == wanted);
        let (Some((index, (_, value))), None) = (found.next(), found.next()) else { return None };
        let value = serde_json::from_str(value.get()).ok().filter(accepts)?;
        self.0.remove(index);
        Some(value)
    }

    /// Removes the fields with these names.
    pub(super) fn take(&mut self, names: &[&str]) -> Self {
        let (taken, rest) =
            std::mem::take(&mut self.0).into_iter().partition(|(name, _)| names.contains(&name.as_str()));
        self.0 = rest;
        Self(taken)
    }

    /// Whether there is a field with one of these names.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.0.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// Formats each field on one or more lines.
    pub(super) fn lines(&self, width: usize) -> Vec<Printable> {
        let each = |(name, value): &(String, Box<RawValue>)| {
            let name = printable!("    {}: ", key(name));
            match serde_json::from_str::<String>(value.get()) {
                Ok(text) if !is_scalar(&text) => folded(name, &text, width),
                Err(_) if is_scalar(value.get()) => folded(name, value.get(), width),
                _ => folded(printable!("{}{} ", name, JSON), value.get(), width),
            }
        };
        self.0.iter().flat_map(each).collect()
    }
}

/// Whether a text is a JSON value that is no text, list or object. It is shown as it is, so such a text is shown as JSON.
fn is_scalar(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text)
        .is_ok_and(|value| !(value.is_string() || value.is_array() || value.is_object()))
}

/// Formats an input that is not an object.
pub(super) fn of_json(input: &str, width: usize) -> Vec<Printable> {
    if input == "null" { Vec::new() } else { folded(printable!("    {} ", JSON), input, width) }
}

/// Returns a field's name. A name that could be read as a name with its value is quoted.
fn key(name: &str) -> Printable {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && name.chars().all(is_plain) {
        return Printable::exact(name);
    }
    Printable::exact(&serde_json::Value::from(name).to_string())
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
