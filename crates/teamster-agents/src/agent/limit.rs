//! The vendor's limits as an event, where an agent tells of them only with its failure.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use teamster_types::event::{Event, RateLimit, RateLimitStatus};

/// Requests are refused until then.
pub(super) fn rejected_until(at: OffsetDateTime) -> Event {
    Event::RateLimit(Box::new(RateLimit {
        status: RateLimitStatus::Rejected,
        resets_at: time(at).map(Into::into),
        kind: None,
    }))
}

/// A time as it stands in events.
pub(super) fn time(at: OffsetDateTime) -> Option<String> {
    at.format(&Rfc3339).ok()
}
