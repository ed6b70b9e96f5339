//! Documents, as text: entries put in, and taken out again. No file is touched here.
//!
//! Everything that a user wrote stays as it is, byte for byte: comments, order, line ends, a byte order mark. Each result is
//! read again before it is given out: it says what the user's document says, and the entries, and nothing else.

mod data;
mod jsonc;
mod lines;
mod toml;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use data::Data;

/// Entries by name.
pub type Entries = BTreeMap<String, Value>;

/// A language of configuration files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// TOML 1.0.
    Toml,
    /// JSON, in which comments and trailing commas are allowed.
    Jsonc,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Toml => "TOML",
            Self::Jsonc => "JSON",
        }
    }
}

/// Where in a document entries go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The document's language.
    pub format: Format,
    /// The keys that lead to the table or object which holds the entries, from the root on.
    pub at: Vec<String>,
}

/// Why a document cannot take entries, or does not give them back.
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
        /// The first line with a fault, from 1 on.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Where entries should go, something else stands.
    #[error("{at} is {found}, where a table of entries is expected")]
    NotATable {
        /// The keys.
        at: String,
        /// What it is.
        found: &'static str,
    },
    /// A key is there twice: which one counts, differs between readers.
    #[error("{key} is there twice; remove one of them")]
    Duplicate {
        /// The keys.
        key: String,
    },
    /// An entry has a value that the language does not have.
    #[error("the entry {entry:?} has a value that {format} cannot hold: {value}")]
    Unrepresentable {
        /// The entry.
        entry: String,
        /// The language.
        format: &'static str,
        /// What kind of value.
        value: &'static str,
    },
    /// The result would not say what it should. Nothing is written then.
    #[error("it is written in a way that cannot be edited without a change to other parts")]
    Unfaithful,
}

/// A document without the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TakenOut {
    /// Its text.
    pub bytes: Vec<u8>,
    /// Whether nothing stands in it: no value, and no comment.
    pub is_empty: bool,
    /// Entries that somebody has changed since they were put in. They were left.
    pub changed: Vec<String>,
}

/// Puts entries into a document. An entry of the same name is replaced.
///
/// `base` is `None` where there is no document yet.
pub fn merge(base: Option<&[u8]>, place: &Place, entries: &Entries) -> Result<Vec<u8>, DocumentError> {
    let base = Text::read(base.unwrap_or_default())?;
    let body = match place.format {
        Format::Toml => toml::insert(&base.body, &place.at, entries)?,
        Format::Jsonc => jsonc::insert(&base.body, &place.at, entries)?,
    };
    let before = base.data(place)?;
    let merged = Text { bom: base.bom, body: Cow::Owned(body) };
    let mut after = merged.data(place)?;
    let put_in = after.entries(&place.at).is_some_and(|there| {
        entries.iter().all(|(name, value)| there.get(name.as_str()).is_some_and(|found| *found == Data::of(value)))
    });
    let put = [entries.clone()];
    undo(&mut after, &before, place, &put);
    if !put_in || after != before {
        return Err(DocumentError::Unfaithful);
    }
    Ok(merged.into_bytes())
}

/// Takes entries out of a document that somebody may have edited since they were put in, and puts back what stood in
/// their place.
///
/// `base` is the document before, and `put` the sets of entries that may have been put into it, the last one first. An
/// entry with another value than that of any set is left.
pub fn take_out(
    current: &[u8],
    base: Option<&[u8]>,
    place: &Place,
    put: &[Entries],
) -> Result<TakenOut, DocumentError> {
    let base = Text::read(base.unwrap_or_default())?;
    let text = Text::read(current)?;
    let before = base.data(place)?;
    let mut expected = text.data(place)?;
    let Undone { steps, changed } = undo(&mut expected, &before, place, put);
    let is_empty = expected.is_empty_object();
    let done = |body: Cow<'_, str>| {
        let taken = Text { bom: text.bom, body };
        (taken.data(place).as_ref() == Ok(&expected)).then(|| TakenOut {
            is_empty: is_empty && taken.says_nothing(),
            bytes: taken.into_bytes(),
            changed: changed.clone(),
        })
    };
    // As text first: that keeps the user's edit, and everything else, to the letter.
    for entries in put {
        let ours = merge(Some(&base.bytes()), place, entries).ok();
        let ours = ours.as_deref().and_then(|ours| Text::read(ours).ok());
        let merged = ours.and_then(|ours| lines::three_way(&ours.body, &base.body, &text.body));
        if let Some(taken) = merged.and_then(|body| done(Cow::Owned(body))) {
            return Ok(taken);
        }
    }
    let body = match place.format {
        Format::Toml => toml::take_out(&text.body, &base.body, &place.at, &steps)?,
        Format::Jsonc => jsonc::take_out(&text.body, &base.body, &place.at, &steps)?,
    };
    done(Cow::Owned(body)).ok_or(DocumentError::Unfaithful)
}

/// What is to be done to take entries out.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The entry goes.
    Remove(String),
    /// The user's own entry of that name comes back.
    Restore(String),
    /// So many of the keys lead to a table that was made for entries, and is empty now.
    Prune(usize),
}

struct Undone {
    steps: Vec<Step>,
    changed: Vec<String>,
}

/// Does it to the data, and says what it did.
fn undo(data: &mut Data, base: &Data, place: &Place, put: &[Entries]) -> Undone {
    let mut undone = Undone { steps: Vec::new(), changed: Vec::new() };
    let own = base.entries(&place.at);
    let Some(there) = data.entries_mut(&place.at) else { return undone };
    let names: std::collections::BTreeSet<_> = put.iter().flat_map(BTreeMap::keys).collect();
    for name in names {
        let own = own.and_then(|own| own.get(name.as_str()));
        let Some(found) = there.get(name.as_str()) else { continue };
        if own == Some(found) {
            continue;
        }
        if !put.iter().filter_map(|set| set.get(name)).any(|value| *found == Data::of(value)) {
            undone.changed.push(name.clone());
        } else if let Some(own) = own {
            there.insert(name.clone(), own.clone());
            undone.steps.push(Step::Restore(name.clone()));
        } else {
            there.remove(name.as_str());
            undone.steps.push(Step::Remove(name.clone()));
        }
    }
    for depth in (1..=place.at.len()).rev() {
        let path = place.at.get(..depth).unwrap_or_default();
        let is_made = base.entries(path).is_none() && data.entries(path).is_some_and(BTreeMap::is_empty);
        let Some((key, parents)) = path.split_last().filter(|_| is_made) else { break };
        if let Some(parent) = data.entries_mut(parents) {
            parent.remove(key.as_str());
            undone.steps.push(Step::Prune(depth));
        }
    }
    undone
}

/// A text without its byte order mark, which no parser takes.
struct Text<'a> {
    bom: &'static str,
    body: Cow<'a, str>,
}

impl<'a> Text<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, DocumentError> {
        const BOM: &str = "\u{feff}";
        let text = std::str::from_utf8(bytes).map_err(|_| DocumentError::NotText)?;
        Ok(match text.strip_prefix(BOM) {
            Some(body) => Self { bom: BOM, body: Cow::Borrowed(body) },
            None => Self { bom: "", body: Cow::Borrowed(text) },
        })
    }

    fn data(&self, place: &Place) -> Result<Data, DocumentError> {
        match place.format {
            Format::Toml => toml::data(&self.body),
            Format::Jsonc => jsonc::data(&self.body, &place.at),
        }
    }

    /// Whether there is nothing but what an empty document has.
    fn says_nothing(&self) -> bool {
        self.body.chars().all(|char| char.is_whitespace() || matches!(char, '{' | '}'))
    }

    fn bytes(&self) -> Vec<u8> {
        [self.bom, &*self.body].concat().into_bytes()
    }

    fn into_bytes(self) -> Vec<u8> {
        if self.bom.is_empty() { self.body.into_owned().into_bytes() } else { self.bytes() }
    }
}

/// How keys are shown.
fn shown(at: &[String]) -> String {
    if at.is_empty() { "the document".to_owned() } else { format!("\"{}\"", at.join(".")) }
}
