//! Rate limits of vendors: as events, and by the text of a failure.
//!
//! A limit of a plan or a quota lasts for hours or days, so a failure by it is not retryable. The text often names its end.

mod end;

use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub use end::{LimitEnd, LocalTime};
use teamster_types::event::{ErrorCode, Event, Failure, RateLimit, RateLimitStatus};

/// A limit that ends within this time is retryable.
const SHORT: Duration = Duration::from_mins(5);

/// What texts about limits of a plan or a quota contain, in lower case.
const LASTING: &[&str] = &[
    "weekly",
    "daily",
    "monthly",
    "per day",
    "per week",
    "per month",
    "session limit",
    "spend limit",
    "usage limit",
    "5-hour limit",
    "hit your limit",
    "quota will reset",
];

/// Returns the event of a limit that rejects requests until this time.
pub(super) fn rejected_until(at: OffsetDateTime) -> Event {
    Event::RateLimit(Box::new(RateLimit::new(RateLimitStatus::Rejected).with_reset(time(at).map(Into::into))))
}

/// Formats a time as events do.
pub(super) fn time(at: OffsetDateTime) -> Option<String> {
    at.format(&Rfc3339).ok()
}

/// Returns when the limit that caused a failure ends, if its text names that.
pub fn end_of(failure: &Failure) -> Option<LimitEnd> {
    (failure.code == ErrorCode::RateLimit).then(|| end::of_text(&failure.message)).flatten()
}

/// Marks the failure by a limit of a plan or a quota as not retryable. Returns when a limit ends, if its text names that.
pub(super) fn classify(failure: &mut Failure) -> Option<LimitEnd> {
    if failure.code != ErrorCode::RateLimit {
        return None;
    }
    let end = end_of(failure);
    let is_long = match &end {
        Some(LimitEnd::After(duration)) => *duration > SHORT,
        Some(LimitEnd::At(_) | LimitEnd::Next(_)) => true,
        None => false,
    };
    let text = failure.message.as_str().to_lowercase();
    if is_long || LASTING.iter().any(|part| text.contains(part)) {
        failure.retryable = Some(false);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_a_plan_is_not_retryable_and_one_of_a_minute_is() {
        for (text, retryable) in [
            ("You've hit your weekly limit · resets Oct 6, 1am (UTC)", false),
            ("You've hit your session limit · resets 12:53am (UTC)", false),
            ("You've hit your Opus limit · resets 3pm (Europe/Berlin)", false),
            ("You've hit your weekly limit", false),
            ("Claude AI usage limit reached|1795308795", false),
            ("You’ve hit your usage limit. Try again at Oct 6th, 2026 1:00 AM.", false),
            ("You have exhausted your daily quota on this model.", false),
            ("You have exhausted your capacity on this model. Your quota will reset after 21h9m9s.", false),
            ("Rate limit reached on requests per day (RPD): Limit 200. Please try again in 7m12s.", false),
            ("Rate limit reached on tokens per min (TPM). Please try again in 1.2s.", true),
            ("Your quota was exceeded.\nSuggested retry after 20s.", true),
            ("Rate limited", true),
        ] {
            let mut failure = Failure::new(ErrorCode::RateLimit, text);
            classify(&mut failure);
            assert_eq!(failure.retryable, Some(retryable), "{text}");
        }
        let mut other = Failure::new(ErrorCode::Overloaded, "the daily load is too high");
        assert_eq!((classify(&mut other), other.retryable), (None, Some(true)));
    }
}
