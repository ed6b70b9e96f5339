//! Collections with a maximum size, for data from an agent. If a collection is full, the oldest entry is removed.

use std::borrow::{Borrow, Cow};
use std::hash::{Hash, RandomState};

use hashlink::{LinkedHashMap, linked_hash_map};
use serde_json::Value;

use teamster_types::event::PermissionDenial;

/// The default maximum number of entries.
pub(crate) const MAX_ENTRIES: usize = 10_000;

/// The default maximum bytes of keys and values. Sizes are estimates.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// The maximum number of denials in an outcome.
const MAX_DENIALS: usize = 1000;

/// The bytes of an entry besides its key and value.
const ENTRY_BYTES: usize = 128;

/// A map from ids to values, in the order of insertion.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    /// The oldest entry is the first one.
    entries: LinkedHashMap<K, Entry<V>, RandomState>,
    bytes: usize,
    max_entries: usize,
}

/// A set of ids.
pub(crate) type Ids<K = String> = Bounded<K, ()>;

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
}

impl<K: Clone + Eq + Hash + AsRef<str>, V> Bounded<K, V> {
    /// Creates an empty map with this maximum number of entries.
    pub(crate) fn of(max_entries: usize) -> Self {
        Self { entries: LinkedHashMap::with_hasher(RandomState::new()), bytes: 0, max_entries }
    }

    /// Adds or replaces an entry. `bytes` estimates the heap memory of its value. Returns the entries that were removed to make
    /// room.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) -> Vec<(K, V)> {
        let bytes = bytes.saturating_add(2 * key.as_ref().len() + ENTRY_BYTES);
        if let Some(replaced) = self.entries.insert(key, Entry { value, bytes }) {
            self.bytes -= replaced.bytes;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        std::iter::from_fn(|| self.pop_excess()).collect()
    }

    /// Removes the oldest entry, if there are too many or they are too large.
    fn pop_excess(&mut self) -> Option<(K, V)> {
        let is_excess = self.entries.len() > 1 && (self.entries.len() > self.max_entries || self.bytes > MAX_BYTES);
        let (oldest, entry) = if is_excess { self.entries.pop_front()? } else { return None };
        self.bytes -= entry.bytes;
        Some((oldest, entry.value))
    }

    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub(crate) fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    pub(crate) fn contains<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.entries.contains_key(key)
    }

    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let Entry { value, bytes } = self.entries.remove(key)?;
        self.bytes -= bytes;
        Some(value)
    }

    /// Changes the estimated size of a value. Other entries may be removed to make room.
    pub(crate) fn resize<Q: AsRef<str> + Hash + Eq + ?Sized>(&mut self, key: &Q, bytes: usize)
    where
        K: Borrow<Q>,
    {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let bytes = bytes.saturating_add(2 * key.as_ref().len() + ENTRY_BYTES);
        self.bytes = (self.bytes - entry.bytes).saturating_add(bytes);
        entry.bytes = bytes;
        while self.bytes > MAX_BYTES {
            let Some(oldest) = self.entries.keys().find(|other| (*other).borrow() != key).cloned() else { break };
            self.remove::<K>(&oldest);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entries, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// Returns the values, the oldest first.
    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Removes all entries and returns them, the oldest first.
    pub(crate) fn take(&mut self) -> Vec<(K, V)> {
        self.bytes = 0;
        std::iter::from_fn(|| self.entries.pop_front()).map(|(key, entry)| (key, entry.value)).collect()
    }
}

impl<K: Clone + Eq + Hash + AsRef<str>> Ids<K> {
    /// Adds an id. Returns whether it was not in the set.
    pub(crate) fn add(&mut self, id: K) -> bool {
        self.add_and_count(id).is_some()
    }

    /// Adds an id. Returns the number of ids that were removed to make room; `None` if the id was in the set.
    pub(crate) fn add_and_count(&mut self, id: K) -> Option<usize> {
        let bytes = 2 * id.as_ref().len() + ENTRY_BYTES;
        match self.entries.entry(id) {
            linked_hash_map::Entry::Occupied(_) => return None,
            linked_hash_map::Entry::Vacant(vacant) => vacant.insert(Entry { value: (), bytes }),
        };
        self.bytes = self.bytes.saturating_add(bytes);
        Some(std::iter::from_fn(|| self.pop_excess()).count())
    }
}

impl<K: Clone + Eq + Hash + AsRef<str>, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self::of(MAX_ENTRIES)
    }
}

/// Appends items to a list until it has `max` items. Further ones are dropped.
pub(crate) fn push<T>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>, max: usize) {
    let room = max.saturating_sub(list.len());
    list.extend(items.into_iter().take(room));
}

/// Adds denials to a list of at most 1,000 denials and about [`MAX_BYTES`]. If a denial is too large, its input is dropped; if
/// it is still too large, the denial is dropped.
pub(crate) fn push_denials(list: &mut Vec<PermissionDenial>, items: impl IntoIterator<Item = PermissionDenial>) {
    let bytes_of = |denial: &PermissionDenial| {
        let id = denial.tool_id.as_ref().map_or(0, |id| id.as_str().len());
        denial.tool_name.len() + id + denial.input.as_ref().map_or(0, |input| input.as_str().len())
    };
    let mut bytes: usize = list.iter().map(bytes_of).sum();
    for mut denial in items.into_iter().take(MAX_DENIALS.saturating_sub(list.len())) {
        if bytes + bytes_of(&denial) > MAX_BYTES {
            denial.input = None;
        }
        let more = bytes_of(&denial);
        if bytes + more <= MAX_BYTES {
            bytes += more;
            list.push(denial);
        }
    }
}

/// Estimates the memory of a JSON value in bytes.
pub(crate) fn bytes_of(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| 48 + name.len() + bytes_of(value)).sum(),
        _ => 0,
    };
    size_of::<Value>() + inner
}

/// The length and the hash of the text that was emitted so far, without the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EmittedText {
    bytes: usize,
    hash: u64,
}

impl EmittedText {
    /// Adds a piece of text.
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes += text.len();
        self.hash = fnv(self.hash, text);
    }

    /// Whether no text was emitted.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Like [`rest`](Self::rest), for a whole text in pieces.
    pub(crate) fn rest_of<'t>(&self, pieces: impl Iterator<Item = Cow<'t, str>>) -> String {
        let (mut seen, mut rest) = (Self::default(), String::new());
        for piece in pieces {
            let old = (self.bytes - seen.bytes).min(piece.len());
            let Some((emitted, new)) = piece.split_at_checked(old) else { return String::new() };
            seen.push(emitted);
            rest.push_str(new);
        }
        if seen == *self { rest } else { String::new() }
    }

    /// Returns the part of a whole text that was not emitted; empty if the whole text does not start with the emitted one.
    pub(crate) fn rest<'t>(&self, whole: &'t str) -> &'t str {
        match whole.split_at_checked(self.bytes) {
            Some((emitted, rest)) if fnv(Self::default().hash, emitted) == self.hash => rest,
            _ => "",
        }
    }
}

impl Default for EmittedText {
    fn default() -> Self {
        Self { bytes: 0, hash: 0xcbf2_9ce4_8422_2325 }
    }
}

/// Computes FNV-1a. The hash of a text does not depend on how the text is split.
fn fnv(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_removes_its_oldest_entry() {
        let mut map = Bounded::of(3);
        for (at, key) in ["a", "b", "c"].into_iter().enumerate() {
            assert!(map.insert(key.to_owned(), at, 0).is_empty());
        }
        assert!(map.insert("a".to_owned(), 9, 0).is_empty(), "a replaced entry is the newest one");
        assert_eq!(map.insert("d".to_owned(), 3, 0), [("b".to_owned(), 1)]);
        assert_eq!((map.get("a"), map.get("b"), map.entries.len()), (Some(&9), None, 3));
        assert_eq!(map.take(), [("c".to_owned(), 2), ("a".to_owned(), 9), ("d".to_owned(), 3)]);
        assert!(map.is_empty() && map.bytes == 0);
    }

    #[test]
    fn the_sizes_of_ids_and_values_are_limited() {
        let mut ids = Ids::default();
        for number in 0..100 {
            assert!(ids.add(format!("{number}{}", "x".repeat(1 << 20))));
        }
        assert!(ids.entries.len() <= 8 && ids.bytes <= MAX_BYTES, "{}", ids.entries.len());
        let mut map = Bounded::default();
        map.insert("large".to_owned(), (), 10 * MAX_BYTES);
        assert_eq!(map.entries.len(), 1, "one entry always fits");
        assert_eq!(map.insert("next".to_owned(), (), 1).len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn the_rest_of_a_text_does_not_depend_on_how_its_start_was_split(emitted: Vec<String>, rest: String) {
            let mut text = EmittedText::default();
            for piece in &emitted {
                text.push(piece);
            }
            let whole = emitted.concat() + &rest;
            proptest::prop_assert_eq!(text.rest(&whole), &rest);
            for size in 1..8 {
                let characters: Vec<char> = whole.chars().collect();
                let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>().into());
                proptest::prop_assert_eq!(text.rest_of(pieces), &*rest);
            }
        }
    }
}
