//! Remembers the ids of commands and edits while their signatures are valid, so that a replay has no effect.
//!
//! Ids of messages and answers are not stored here: the gateway accepts a message once by its id, and a permission
//! request is answered once.

use std::collections::BTreeMap;

use serde_json::Value;
use teamster_channel::{Inbox, InboxError};

/// The largest number of remembered ids.
const MAX: usize = 1_000;

/// The key of the stored state.
const KEY: &str = "recent-ids";

/// The ids, with the times in seconds until which they are remembered.
#[derive(Debug, Default)]
pub(crate) struct RecentIds(BTreeMap<String, i64>);

impl RecentIds {
    /// Reads the stored ids.
    pub(crate) async fn load(inbox: &dyn Inbox) -> Result<Self, InboxError> {
        let stored = inbox.state(KEY).await?.unwrap_or(Value::Null);
        // An unreadable state is that of another release: its ids have expired.
        Ok(Self(serde_json::from_value(stored).unwrap_or_default()))
    }

    /// Returns whether an id is remembered.
    pub(crate) fn contains(&self, id: &str, now: i64) -> bool {
        self.0.get(id).is_some_and(|until| *until >= now)
    }

    /// Returns whether the maximum number of ids is stored.
    pub(crate) fn is_full(&mut self, now: i64) -> bool {
        self.0.retain(|_, until| *until >= now);
        self.0.len() >= MAX
    }

    /// Remembers an id. It is durable when this returns.
    pub(crate) async fn add(&mut self, inbox: &dyn Inbox, id: &str, until: i64) -> Result<(), InboxError> {
        self.0.insert(id.to_owned(), until);
        let state = serde_json::to_value(&self.0).map_err(|error| InboxError(error.to_string()))?;
        inbox.set_state(KEY, state).await
    }
}
