//! In place of `callers`, where no tools are served.

use std::sync::Arc;

use teamster_types::event::Event;
use teamster_types::request::RunRequest;

/// Nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers;

impl Callers {
    pub(crate) fn of(_agent: &str, _run_id: &Arc<str>, _request: &RunRequest) -> Self {
        Self
    }

    pub(crate) fn next_turn(&self) -> Self {
        self.clone()
    }

    pub(crate) fn note(&self, _event: &Event) {}
}
