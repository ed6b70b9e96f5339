//! Chats whose id has changed. A group that becomes a supergroup gets a new id; its conversation keeps the address with the first
//! one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The largest number of changed ids.
const MAX_ALIASES: usize = 10_000;

/// The first id of each chat whose id has changed, by its present one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aliases {
    first: BTreeMap<i64, i64>,
    is_changed: bool,
}

impl Aliases {
    /// Reads what [`to_value`](Self::to_value) has written.
    pub(crate) fn from_value(value: &Value) -> Self {
        let entries = value.as_object().into_iter().flatten();
        let first = entries.filter_map(|(present, first)| Some((present.parse().ok()?, first.as_i64()?)));
        Self { first: first.take(MAX_ALIASES).collect(), is_changed: false }
    }

    pub(crate) fn to_value(&self) -> Value {
        self.first.iter().map(|(present, first)| (present.to_string(), json!(first))).collect()
    }

    /// Adds the aliases that were stored.
    pub(crate) fn merge(&mut self, stored: Self) {
        for (present, first) in stored.first {
            self.first.entry(present).or_insert(first);
        }
    }

    /// Records that a chat has another id now.
    pub(crate) fn migrated(&mut self, from: i64, to: i64) {
        let first = self.first(from);
        if from == to || first == to || self.first.len() >= MAX_ALIASES {
            return;
        }
        self.is_changed |= self.first.insert(to, first) != Some(first);
    }

    /// Returns the id in addresses.
    pub(crate) fn first(&self, present: i64) -> i64 {
        self.first.get(&present).copied().unwrap_or(present)
    }

    /// Returns the id to send to. If a chat has changed its id several times, only the last one works.
    pub(crate) fn present(&self, first: i64) -> i64 {
        let present = self.first.iter().filter(|(_, known)| **known == first).map(|(present, _)| *present);
        // Ids of supergroups are lower than those of groups.
        present.min().unwrap_or(first)
    }

    /// Returns whether there is something to store, once.
    pub(crate) const fn take_change(&mut self) -> bool {
        std::mem::replace(&mut self.is_changed, false)
    }

    /// Storing has failed: it is tried again.
    pub(crate) const fn keep_change(&mut self) {
        self.is_changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migrated_chat_keeps_its_first_id_in_addresses() {
        let mut aliases = Aliases::default();
        aliases.migrated(-5, -1001);
        assert_eq!((aliases.first(-1001), aliases.first(-5), aliases.first(7)), (-5, -5, 7));
        assert_eq!((aliases.present(-5), aliases.present(7)), (-1001, 7));
        assert!(aliases.take_change() && !aliases.take_change());
        aliases.migrated(-5, -1001);
        assert!(!aliases.take_change(), "nothing is new");
        let mut restored = Aliases::default();
        restored.merge(Aliases::from_value(&aliases.to_value()));
        assert_eq!(restored.present(-5), -1001);
        restored.migrated(-1001, -5);
        assert_eq!(restored.present(-5), -1001, "no circle");
    }
}
