//! Values of Codex's configuration, as TOML.
//!
//! A process receives them as `--config=KEY=VALUE`, and a thread of the app-server as JSON. The CLI uses a VALUE that is not TOML as
//! plain text. Therefore all texts are quoted.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::launch::Launch;

/// The settings of one run or session. The keys are constants of this crate, never values of a caller.
#[derive(Debug, Default)]
pub(super) struct Settings(Vec<(&'static str, String)>);

impl Settings {
    /// Adds a setting. The value must be TOML.
    pub(super) fn set(&mut self, key: &'static str, value: impl std::fmt::Display) {
        self.0.push((key, value.to_string()));
    }

    /// Adds the settings to the arguments of a process.
    pub(super) fn flags(&self, launch: &mut Launch) {
        for (key, value) in &self.0 {
            launch.flag("--config", format_args!("{key}={value}"));
        }
    }

    /// Returns the settings for a thread; `None` only if a value is not TOML.
    pub(super) fn to_json(&self) -> Option<Map<String, Value>> {
        self.0.iter().map(|(key, value)| Some(((*key).to_owned(), json_of(value)?))).collect()
    }
}

/// Converts a TOML value to JSON.
fn json_of(value: &str) -> Option<Value> {
    let mut document: Map<String, Value> = toml::from_str(&format!("value = {value}")).ok()?;
    document.remove("value")
}

/// Returns a TOML basic string. JSON writes the same, except DEL, which TOML requires to be escaped.
pub(super) fn string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

pub(super) fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(string).collect();
    format!("[{}]", texts.join(","))
}

/// A TOML inline table. Its keys are quoted, because they may contain any character.
#[derive(Debug, Default)]
pub(super) struct Table(String);

impl Table {
    /// Adds an entry. The value must be TOML.
    pub(super) fn entry(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{comma}{}={value}", string(key));
        self
    }

    /// Returns the table as JSON; `None` only if an entry's value is not TOML.
    pub(super) fn to_json(&self) -> Option<Value> {
        json_of(&self.to_string())
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
    fn any_text_becomes_one_basic_string() {
        assert_eq!(string("a\"b\\c\n\u{7f}\u{1}ü"), r#""a\"b\\c\n\u007f\u0001ü""#);
        assert_eq!(strings(["a]", "b,\""]), r#"["a]","b,\""]"#);
    }

    #[test]
    fn settings_have_the_same_values_as_flags_and_as_json() {
        let mut settings = Settings::default();
        settings.set("a", 0);
        settings.set("b.c", Table::default().entry("d e", strings(["x\"", "\u{7f}"])));
        let mut launch = Launch::new("x");
        settings.flags(&mut launch);
        let flag = |text: &str| crate::launch::Arg::Text(text.to_owned());
        assert_eq!(launch.args, [flag("--config=a=0"), flag(r#"--config=b.c={"d e"=["x\"","\u007f"]}"#)]);
        let data = serde_json::json!({"a": 0, "b.c": {"d e": ["x\"", "\u{7f}"]}});
        assert_eq!(settings.to_json().map(Value::Object), Some(data));
    }

    #[test]
    fn keys_of_a_table_are_quoted_like_values() {
        let table = Table::default().entry("a.b", string("x")).entry("c\"}", "true");
        assert_eq!(table.to_string(), r#"{"a.b"="x","c\"}"=true}"#);
        assert_eq!(table.to_json(), Some(serde_json::json!({"a.b": "x", "c\"}": true})));
    }
}
