//! Merges two JSON objects as text: what is not in both keeps its text, including its order and escapes.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Merges `ours` into `theirs`. Objects in both are merged; every other value of `ours` replaces the other one.
pub(crate) fn merge(theirs: &str, ours: &str) -> Result<String, String> {
    let fields: Fields<'_> = serde_json::from_str(theirs).map_err(|error| error.to_string())?;
    let over: Fields<'_> = serde_json::from_str(ours).map_err(|error| error.to_string())?;
    Ok(join(fields, over))
}

fn join(mut theirs: Fields<'_>, ours: Fields<'_>) -> String {
    let mut joined = Vec::new();
    for (name, over) in ours {
        let both = theirs.remove(&name).and_then(|under| Some((fields(under)?, fields(over)?)));
        let value = both.map_or_else(|| over.get().to_owned(), |(under, over)| join(under, over));
        joined.push((name, value));
    }
    joined.extend(theirs.into_iter().map(|(name, value)| (name, value.get().to_owned())));
    let fields: Vec<String> =
        joined.into_iter().map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name))).collect();
    format!("{{{}}}", fields.join(","))
}

fn fields(value: &RawValue) -> Option<Fields<'_>> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(theirs: &str, ours: &str) -> String {
        merge(theirs, ours).unwrap()
    }

    #[test]
    fn ours_is_merged_into_theirs_field_by_field() {
        assert_eq!(check("{}", r#"{"a":1}"#), r#"{"a":1}"#);
        assert_eq!(check(r#"{"b": {"x": 1, "y": 2}}"#, r#"{"b":{"x":3},"a":[1]}"#), r#"{"a":[1],"b":{"x":3,"y":2}}"#);
        assert_eq!(check(r#"{"a": {"x": 1}}"#, r#"{"a":[2]}"#), r#"{"a":[2]}"#);
    }

    #[test]
    fn what_is_not_in_both_keeps_its_text() {
        assert_eq!(check("{}", "{\"p\":{\"z\":1,\"a\":\"\\u007benv\"}}"), "{\"p\":{\"z\":1,\"a\":\"\\u007benv\"}}");
        assert_eq!(check(r#"{"p": {"z":1,"a":"{env:X}"}}"#, r#"{"q":1}"#), r#"{"q":1,"p":{"z":1,"a":"{env:X}"}}"#);
    }

    #[test]
    fn a_value_that_is_not_an_object_is_rejected() {
        for wrong in ["[]", "{", "text", "{'a': 1}"] {
            assert!(merge(wrong, "{}").is_err(), "{wrong}");
        }
    }
}
