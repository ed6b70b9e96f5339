//! How a classified failure becomes the outcome of a run.

use super::Classification;
use crate::protocol::Outcome;

impl Classification {
    /// Sets the failure of an outcome.
    pub(in crate::agent) fn apply_to(self, outcome: &mut Outcome) {
        outcome.failure = Some(self.failure);
        outcome.classified_by = self.row;
    }
}

impl From<Classification> for Outcome {
    fn from(classification: Classification) -> Self {
        Self { failure: Some(classification.failure), classified_by: classification.row, ..Self::default() }
    }
}
