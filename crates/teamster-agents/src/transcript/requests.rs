//! Permission requests without an answer. Each request gets exactly one answer.

use crate::bounded::Ids;
use teamster_types::event::{AnsweredBy, Event, PermissionAnswered, PermissionDecision, RequestId};

/// The requests that have no answer so far.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(Ids<RequestId>);

impl OpenRequests {
    /// Adds a request. An earlier open request with the same id is cancelled, and so is the oldest one if there are too many.
    pub(super) fn open(&mut self, request: &RequestId, out: &mut impl Extend<Event>) {
        if self.0.remove(request).is_some() {
            out.extend([cancelled(request.clone(), AnsweredBy::Agent)]);
        }
        let excess = self.0.insert(request.clone(), (), 0);
        out.extend(excess.into_iter().map(|(request, ())| cancelled(request, AnsweredBy::Limit)));
    }

    /// Records an answer. Returns whether it is emitted: a request that is no longer open has an answer already.
    pub(super) fn answer(&mut self, answered: &mut PermissionAnswered) -> bool {
        let was_open = self.0.remove(&answered.request_id).is_some();
        if was_open {
            answered.request = None;
        }
        was_open || answered.request.is_some()
    }

    /// Cancels all open requests at the end of the run or attempt.
    pub(super) fn cancel_all(&mut self, out: &mut impl Extend<Event>) {
        out.extend(self.0.take().into_iter().map(|(request, ())| cancelled(request, AnsweredBy::End)));
    }
}

fn cancelled(request: RequestId, by: AnsweredBy) -> Event {
    PermissionAnswered::new(request, PermissionDecision::Cancelled, by).into()
}
