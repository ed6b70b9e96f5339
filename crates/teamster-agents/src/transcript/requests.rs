//! Permission requests that wait for an answer. Each gets exactly one.

use crate::bounded::Ids;
use teamster_types::event::{AnsweredBy, Event, PermissionAnswered, PermissionDecision, RequestId};

/// Requests that wait.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(Ids<RequestId>);

impl OpenRequests {
    /// A request waits from now on. If one of the same id does already, or if too many do, the earlier one is cancelled.
    pub(super) fn open(&mut self, request: &RequestId, out: &mut impl Extend<Event>) {
        if self.0.remove(request).is_some() {
            out.extend([cancelled(request.clone(), AnsweredBy::Agent)]);
        }
        let excess = self.0.insert(request.clone(), (), 0);
        out.extend(excess.into_iter().map(|(request, ())| cancelled(request, AnsweredBy::Limit)));
    }

    /// A request is answered. Whether that is passed on: a request that does not wait has its answer already.
    pub(super) fn answer(&mut self, answered: &mut PermissionAnswered) -> bool {
        let waited = self.0.remove(&answered.request_id).is_some();
        if waited {
            answered.request = None;
        }
        waited || answered.request.is_some()
    }

    /// Nothing is answered any more.
    pub(super) fn cancel_all(&mut self, out: &mut impl Extend<Event>) {
        out.extend(self.0.take().into_iter().map(|(request, ())| cancelled(request, AnsweredBy::End)));
    }
}

fn cancelled(request: RequestId, by: AnsweredBy) -> Event {
    PermissionAnswered::new(request, PermissionDecision::Cancelled, by).into()
}
