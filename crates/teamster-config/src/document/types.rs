//! The types of documents and entries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Entries by name.
pub type Entries = BTreeMap<String, Value>;

/// A language of configuration files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// TOML 1.0.
    Toml,
    /// JSON with comments and trailing commas.
    Jsonc,
}

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Toml => "TOML",
            Self::Jsonc => "JSON",
        }
    }
}

/// The location of entries in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The document's language.
    pub format: Format,
    /// The keys from the root to the table or object that contains the entries.
    pub at: Vec<String>,
}

/// Why entries cannot be added to a document or removed from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It does not parse.
    #[error("it is no valid {format}: line {line}: {problem}")]
    Syntax {
        /// The language.
        format: &'static str,
        /// The number of the first invalid line, starting at 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// The location of the entries has another kind of value.
    #[error("{at} is {found}, where a table of entries is expected")]
    NotATable {
        /// The keys.
        at: String,
        /// The kind of value.
        found: &'static str,
    },
    /// A key occurs twice. Readers differ in which one they use.
    #[error("{key} is there twice; remove one of them")]
    Duplicate {
        /// The keys.
        key: String,
    },
    /// An entry has a value that the language cannot represent.
    #[error("the entry {entry:?} has a value that {format} cannot hold: {value}")]
    Unrepresentable {
        /// The entry.
        entry: String,
        /// The language.
        format: &'static str,
        /// The kind of value.
        value: &'static str,
    },
    /// The result would not have the required data. Nothing is written.
    #[error("it is written in a way that cannot be edited without a change to other parts")]
    Unfaithful,
}

/// A document without the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TakenOut {
    /// The text.
    pub bytes: Vec<u8>,
    /// Whether the document has no value and no comment.
    pub is_empty: bool,
    /// Entries that were changed since they were added. They remain.
    pub changed: Vec<String>,
}

/// A step of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Remove the entry.
    Remove(String),
    /// Restore the user's own entry with this name.
    Restore(String),
    /// Remove the empty table at this depth of the path, which was created for entries.
    Prune(usize),
}

/// Formats a path of keys.
pub(super) fn shown(at: &[String]) -> String {
    if at.is_empty() { "the document".to_owned() } else { format!("\"{}\"", at.join(".")) }
}
