//! JSON of an agent, without changes.

mod strict;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use self::strict::Strict;

/// Parses a JSON document that all parsers read in the same way.
///
/// # Errors
/// If the text is not JSON, if an object has a name twice (parsers differ in which one they use), if a number is out of the range
/// of `f64`, or if the document is nested more than 127 levels deep.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).map(|Strict(value)| value)
}

/// A JSON value as the agent wrote it, on one line.
///
/// Numbers retain all digits, and nesting has no limit. Cloning is cheap.
///
/// ```
/// use teamster_types::json::RawJson;
///
/// let input: RawJson = serde_json::from_str(r#"{"id": 123456789012345678901234567890, "far": 1e400}"#)?;
/// assert_eq!(input.as_str(), r#"{"id":123456789012345678901234567890,"far":1e400}"#);
/// assert!(input.to_value().is_err()); // 1e400 is out of range
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// Returns the JSON text. It contains no line break.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Parses the value.
    ///
    /// # Errors
    /// See [`parse`].
    pub fn to_value(&self) -> serde_json::Result<Value> {
        parse(self.as_str())
    }

    /// Parses the value as a type.
    ///
    /// # Errors
    /// If the value has another form or is nested too deeply.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    /// Returns a member of an object, unchanged; `None` if the value is not an object or has no such member. If several members
    /// have this name, the last one is returned.
    pub fn member(&self, name: &str) -> Option<Self> {
        let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(self.as_str()).ok()?;
        members.get(name).map(|raw| Self::from_raw(raw))
    }

    /// Returns a member of an object that is a string.
    pub fn text_member(&self, name: &str) -> Option<String> {
        self.member(name)?.read().ok()
    }

    /// Serializes a value; `null` if it has no JSON form.
    pub fn of(value: &impl Serialize) -> Self {
        serde_json::value::to_raw_value(value).map_or_else(|_| Self::default(), |raw| Self(Arc::from(raw)))
    }

    /// Stores a value without its insignificant white space.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self::compact(raw.get()).unwrap_or_else(|| Self(Arc::from(raw.to_owned())))
    }

    /// Removes the white space between tokens; `None` if there is none.
    fn compact(text: &str) -> Option<Self> {
        let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        if !text.bytes().any(is_space) {
            return None;
        }
        let (mut in_string, mut escaped) = (false, false);
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            if in_string {
                in_string = escaped || character != '"';
                escaped = !escaped && character == '\\';
            } else if character == '"' {
                in_string = true;
            } else if u8::try_from(character).is_ok_and(is_space) {
                continue;
            }
            out.push(character);
        }
        RawValue::from_string(out).ok().map(|raw| Self(Arc::from(raw)))
    }
}

impl Default for RawJson {
    /// `null`.
    fn default() -> Self {
        Self(Arc::from(RawValue::NULL.to_owned()))
    }
}

impl From<&Value> for RawJson {
    fn from(value: &Value) -> Self {
        // A `Value` has only string keys and finite numbers, so it can be serialized.
        Self::of(value)
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    /// Retains the text if the deserializer is `serde_json`'s. A buffering deserializer (of an internally tagged or flattened type)
    /// and one of another format give an equivalent value, within the limits of [`Value`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW_VALUE, RawVisitor)
    }
}

/// The type name with which `serde_json` returns the text itself.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawJson;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut text: A) -> Result<RawJson, A::Error> {
        match text.next_key::<String>()? {
            Some(name) if name == RAW_VALUE => {
                let text: String = text.next_value()?;
                let raw = RawValue::from_string(text).map_err(A::Error::custom)?;
                Ok(RawJson::from_raw(&raw))
            }
            _ => Err(A::Error::custom("not the text of a JSON value")),
        }
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawJson, D::Error> {
        Value::deserialize(deserializer).map(RawJson::from)
    }
}

impl PartialEq for RawJson {
    /// Whether the texts are the same.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl PartialEq<Value> for RawJson {
    fn eq(&self, other: &Value) -> bool {
        self.to_value().is_ok_and(|value| value == *other)
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for RawJson {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RawJson".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_between_tokens_is_removed_and_strings_are_unchanged() {
        let text = "{ \"a b\\\\\" :\n [ 1 , \"x\\\" y\\n\" ]\r\n}";
        let raw: RawJson = serde_json::from_str(text).unwrap();
        assert_eq!(raw.as_str(), "{\"a b\\\\\":[1,\"x\\\" y\\n\"]}");
    }

    #[test]
    fn a_duplicate_name_in_an_object_is_an_error_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"c":1,"\u0063":2}}]"#] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("duplicate name"), "{error}");
        }
        let text = r#"{"a":{"a":[null,true,-1,1.5,"x"]}}"#;
        assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_value_within_a_tagged_or_flattened_type_is_read() {
        #[derive(Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        enum Tagged {
            Call { input: RawJson },
        }
        let Tagged::Call { input } = serde_json::from_str(r#"{"kind":"call","input":{"a":[1]}}"#).unwrap();
        assert_eq!(input.as_str(), r#"{"a":[1]}"#);
    }

    #[test]
    fn deep_nesting_is_retained_and_cannot_be_parsed() {
        let text = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let raw: RawJson = serde_json::from_str(&text).unwrap();
        assert_eq!(raw.as_str(), text);
        assert!(raw.to_value().is_err());
    }
}
