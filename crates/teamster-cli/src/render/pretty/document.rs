//! A JSON document for people.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use teamster::json::RawJson;

/// Parts that are nested deeper are shown on one line.
const DEEPEST: usize = 64;

/// Returns the document with a line for each member. Numbers keep all of their digits.
pub(super) fn indented(document: &RawJson) -> serde_json::Result<String> {
    let raw: &RawValue = serde_json::from_str(document.as_str())?;
    serde_json::to_string_pretty(&Part { raw, depth: 0 })
}

struct Part<'a> {
    raw: &'a RawValue,
    depth: usize,
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.raw.get();
        let part = |raw| Part { raw, depth: self.depth + 1 };
        if self.depth < DEEPEST {
            if let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) {
                return serializer.collect_map(members.into_iter().map(|(name, raw)| (name, part(raw))));
            }
            if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) {
                return serializer.collect_seq(items.into_iter().map(part));
            }
        }
        self.raw.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_of_a_number_is_shown() {
        let text = r#"{"b":[1e400,123456789012345678901234567890],"a":{"c":"x"},"d":[],"e":null}"#;
        let document: RawJson = serde_json::from_str(text).unwrap();
        let expected = "{\n  \"a\": {\n    \"c\": \"x\"\n  },\n  \"b\": [\n    1e400,\n    \
                        123456789012345678901234567890\n  ],\n  \"d\": [],\n  \"e\": null\n}";
        assert_eq!(indented(&document).unwrap(), expected);
    }

    #[test]
    fn a_document_of_any_depth_is_shown() {
        let document: RawJson = serde_json::from_str(&format!("{}{}", "[".repeat(5000), "]".repeat(5000))).unwrap();
        let shown = indented(&document).unwrap();
        assert_eq!(shown.matches('[').count(), 5000);
    }
}
