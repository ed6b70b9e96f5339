//! Values of Codex's configuration, written as TOML.
//!
//! `--config=KEY=VALUE` takes VALUE for TOML, and for plain text where it is none: so nothing goes there unquoted.

use std::fmt::Write as _;

use crate::launch::Launch;

/// `--config=KEY=VALUE`. Keys are ours, never a caller's.
pub(super) fn set(launch: &mut Launch, key: &'static str, value: impl std::fmt::Display) {
    launch.flag("--config", format_args!("{key}={value}"));
}

/// A basic string. JSON writes the same but for DEL, which TOML wants escaped.
pub(super) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

pub(super) fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(string).collect();
    format!("[{}]", texts.join(","))
}

/// An inline table. Its keys are quoted: they may be anything.
#[derive(Debug, Default)]
pub(super) struct Table(String);

impl Table {
    /// Adds an entry; the value is TOML already.
    pub(super) fn entry(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{comma}{}={value}", string(key));
        self
    }

    /// The table as data; `None` only if an entry's value was no TOML.
    pub(super) fn to_json(&self) -> Option<serde_json::Value> {
        let mut document: serde_json::Map<_, _> = toml::from_str(&format!("table = {self}")).ok()?;
        document.remove("table")
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{{{}}}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_one_basic_string() {
        assert_eq!(string("a\"b\\c\n\u{7f}\u{1}ü"), r#""a\"b\\c\n\u007f\u0001ü""#);
        assert_eq!(strings(["a]", "b,\""]), r#"["a]","b,\""]"#);
    }

    #[test]
    fn keys_of_a_table_are_quoted_as_values_are() {
        let table = Table::default().entry("a.b", string("x")).entry("c\"}", "true");
        assert_eq!(table.to_string(), r#"{"a.b"="x","c\"}"=true}"#);
        assert_eq!(table.to_json(), Some(serde_json::json!({"a.b": "x", "c\"}": true})));
    }
}
