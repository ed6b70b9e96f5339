//! The status of the channels, for the operator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use teamster_store::Timestamp;

/// The status of the receiving side of a channel, for the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelStatus {
    /// Whether it receives.
    pub receives: bool,
    /// The last reason why the channel ended or could not be used. It contains no secrets.
    pub last_error: Option<String>,
    /// When that happened.
    pub failed_at: Option<Timestamp>,
}

/// The status of each channel, by its name. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelStatuses(Arc<Mutex<BTreeMap<String, ChannelStatus>>>);

impl ChannelStatuses {
    /// Returns the status of each channel.
    pub(crate) fn all(&self) -> BTreeMap<String, ChannelStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records whether a channel receives.
    pub(super) fn receives(&self, channel: &str, receives: bool) {
        self.change(channel, |status| status.receives = receives);
    }

    /// Records why a channel has ended, or cannot be used.
    pub(super) fn failed(&self, channel: &str, reason: String, at: Timestamp) {
        self.change(channel, |status| (status.last_error, status.failed_at) = (Some(reason), Some(at)));
    }

    fn change(&self, channel: &str, change: impl FnOnce(&mut ChannelStatus)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(all.entry(channel.to_owned()).or_default());
    }
}
