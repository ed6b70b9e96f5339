//! Rate limits of the vendor as events, for agents that report them only with a failure.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use teamster_types::event::{Event, RateLimit, RateLimitStatus};

/// Returns the event of a limit that rejects requests until this time.
pub(super) fn rejected_until(at: OffsetDateTime) -> Event {
    Event::RateLimit(Box::new(RateLimit::new(RateLimitStatus::Rejected).with_reset(time(at).map(Into::into))))
}

/// Formats a time as events do.
pub(super) fn time(at: OffsetDateTime) -> Option<String> {
    at.format(&Rfc3339).ok()
}
