//! The recent failures of hooks, for the operator.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use teamster_store::{ConversationId, Timestamp};

use super::event::HookEventKind;

/// The number of failures that are kept.
const KEPT: usize = 100;

/// A failure of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFailure {
    /// When it failed.
    pub at: Timestamp,
    /// The hook.
    pub hook: String,
    /// The event.
    pub event: HookEventKind,
    /// The conversation.
    pub conversation: Option<ConversationId>,
    /// Why. It contains no output of the hook.
    pub reason: String,
    /// The end of what the command has written to stderr. It is for the operator only.
    pub output: Option<String>,
}

/// The recent failures, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Failures {
    recent: Mutex<VecDeque<HookFailure>>,
    count: AtomicU64,
}

impl Failures {
    /// Keeps a failure, and drops the oldest one beyond the limit.
    pub(super) fn add(&self, failure: HookFailure) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut kept = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(failure);
    }

    /// Returns the failures.
    pub(super) fn all(&self) -> Vec<HookFailure> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Returns the number of failures since the start.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
