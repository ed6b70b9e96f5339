//! The data of a document, independent of its language.

use std::collections::BTreeMap;

use serde_json::Value;

/// A value of either language. Numbers are compared as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    Date(String),
    Array(Vec<Data>),
    Object(BTreeMap<String, Data>),
    /// The values of a key that a JSON object contains several times.
    Several(Vec<Data>),
}

impl Data {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(values) => Self::Array(values.iter().map(Self::of).collect()),
            Value::Object(fields) => {
                Self::Object(fields.iter().map(|(name, value)| (name.clone(), Self::of(value))).collect())
            }
        }
    }

    pub(super) fn empty_object() -> Self {
        Self::Object(BTreeMap::new())
    }

    pub(super) fn is_empty_object(&self) -> bool {
        matches!(self, Self::Object(fields) if fields.is_empty())
    }

    /// Returns the object at these keys.
    pub(super) fn entries(&self, at: &[String]) -> Option<&BTreeMap<String, Self>> {
        let Self::Object(fields) = self else { return None };
        match at.split_first() {
            None => Some(fields),
            Some((key, rest)) => fields.get(key.as_str())?.entries(rest),
        }
    }

    pub(super) fn entries_mut(&mut self, at: &[String]) -> Option<&mut BTreeMap<String, Self>> {
        let Self::Object(fields) = self else { return None };
        match at.split_first() {
            None => Some(fields),
            Some((key, rest)) => fields.get_mut(key.as_str())?.entries_mut(rest),
        }
    }
}
