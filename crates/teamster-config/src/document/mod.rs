//! Adds entries to documents and removes them again. Works on text and touches no file.
//!
//! Everything that a user wrote stays as it is, byte for byte: comments, order, line ends, a byte order mark. Each result is
//! parsed before it is returned: it contains the data of the user's document and the entries, and nothing else.

mod data;
mod jsonc;
mod lines;
mod toml;
mod types;

use std::borrow::Cow;
use std::collections::BTreeMap;

use data::Data;
use types::Step;
pub use types::{DocumentError, Entries, Format, Location, TakenOut};

/// Adds entries to a document. An entry with the same name is replaced.
///
/// `base` is `None` if there is no document.
pub fn merge(base: Option<&[u8]>, location: &Location, entries: &Entries) -> Result<Vec<u8>, DocumentError> {
    let base = Text::read(base.unwrap_or_default())?;
    let body = match location.format {
        Format::Toml => toml::insert(&base.body, &location.at, entries)?,
        Format::Jsonc => jsonc::insert(&base.body, &location.at, entries)?,
    };
    let before = base.data(location)?;
    let merged = Text { bom: base.bom, body: Cow::Owned(body) };
    let mut after = merged.data(location)?;
    let put_in = after.entries(&location.at).is_some_and(|there| {
        entries.iter().all(|(name, value)| there.get(name.as_str()).is_some_and(|found| *found == Data::of(value)))
    });
    let put = [entries.clone()];
    undo(&mut after, &before, location, &put);
    if !put_in || after != before {
        return Err(DocumentError::Unfaithful);
    }
    Ok(merged.into_bytes())
}

/// Removes entries from a document that may have been edited since they were added, and restores the entries that they
/// replaced.
///
/// `base` is the document before, and `put` the sets of entries that may have been added, the newest first. An entry with
/// another value than in any set remains.
pub fn take_out(
    current: &[u8],
    base: Option<&[u8]>,
    location: &Location,
    put: &[Entries],
) -> Result<TakenOut, DocumentError> {
    let base = Text::read(base.unwrap_or_default())?;
    let text = Text::read(current)?;
    let before = base.data(location)?;
    let mut expected = text.data(location)?;
    let Undone { steps, changed } = undo(&mut expected, &before, location, put);
    let is_empty = expected.is_empty_object();
    let done = |body: Cow<'_, str>| {
        let taken = Text { bom: text.bom, body };
        (taken.data(location).as_ref() == Ok(&expected)).then(|| TakenOut {
            is_empty: is_empty && taken.is_empty_document(),
            bytes: taken.into_bytes(),
            changed: changed.clone(),
        })
    };
    // First as text, which keeps the user's edit and everything else exactly.
    for entries in put {
        let ours = merge(Some(&base.bytes()), location, entries).ok();
        let ours = ours.as_deref().and_then(|ours| Text::read(ours).ok());
        let merged = ours.and_then(|ours| lines::three_way(&ours.body, &base.body, &text.body));
        if let Some(taken) = merged.and_then(|body| done(Cow::Owned(body))) {
            return Ok(taken);
        }
    }
    let body = match location.format {
        Format::Toml => toml::take_out(&text.body, &base.body, &location.at, &steps)?,
        Format::Jsonc => jsonc::take_out(&text.body, &base.body, &location.at, &steps)?,
    };
    done(Cow::Owned(body)).ok_or(DocumentError::Unfaithful)
}

struct Undone {
    steps: Vec<Step>,
    changed: Vec<String>,
}

/// Removes entries from the data. Returns the steps.
fn undo(data: &mut Data, base: &Data, location: &Location, put: &[Entries]) -> Undone {
    let mut undone = Undone { steps: Vec::new(), changed: Vec::new() };
    let own = base.entries(&location.at);
    let Some(there) = data.entries_mut(&location.at) else { return undone };
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
    for depth in (1..=location.at.len()).rev() {
        let path = location.at.get(..depth).unwrap_or_default();
        let is_made = base.entries(path).is_none() && data.entries(path).is_some_and(BTreeMap::is_empty);
        let Some((key, parents)) = path.split_last().filter(|_| is_made) else { break };
        if let Some(parent) = data.entries_mut(parents) {
            parent.remove(key.as_str());
            undone.steps.push(Step::Prune(depth));
        }
    }
    undone
}

/// A text without its byte order mark, which no parser accepts.
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

    fn data(&self, location: &Location) -> Result<Data, DocumentError> {
        match location.format {
            Format::Toml => toml::data(&self.body),
            Format::Jsonc => jsonc::data(&self.body, &location.at),
        }
    }

    /// Whether the text contains nothing but an empty document.
    fn is_empty_document(&self) -> bool {
        self.body.chars().all(|char| char.is_whitespace() || matches!(char, '{' | '}'))
    }

    fn bytes(&self) -> Vec<u8> {
        [self.bom, &*self.body].concat().into_bytes()
    }

    fn into_bytes(self) -> Vec<u8> {
        if self.bom.is_empty() { self.body.into_owned().into_bytes() } else { self.bytes() }
    }
}
