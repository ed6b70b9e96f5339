//! How a classified failure becomes the outcome of a run.

use super::Classification;
use crate::agent::limit;
use crate::protocol::Outcome;

impl Classification {
    /// Sets the failure of an outcome.
    pub(in crate::agent) fn apply_to(self, outcome: &mut Outcome) {
        let mut failure = self.failure;
        outcome.limit_end = limit::classify(&mut failure);
        outcome.failure = Some(failure);
        outcome.classified_by = self.row;
    }
}

impl From<Classification> for Outcome {
    fn from(classification: Classification) -> Self {
        let mut outcome = Self::default();
        classification.apply_to(&mut outcome);
        outcome
    }
}
