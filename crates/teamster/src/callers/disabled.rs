//! Replaces `registered` in a build without the feature `tools`.

use std::sync::Arc;

use teamster_types::event::Event;
use teamster_types::request::RunRequest;

/// The callers of a conversation: none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers;

impl Callers {
    pub(crate) fn of(_agent: &str, _run_id: &Arc<str>, _request: &RunRequest) -> Self {
        Self
    }

    pub(crate) fn next_turn(&self) -> Self {
        self.clone()
    }

    #[expect(clippy::unused_self, reason = "the same interface as with the feature")]
    pub(crate) fn note(&self, _event: &Event) {}
}
