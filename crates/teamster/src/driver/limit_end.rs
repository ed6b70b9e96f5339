//! Converts the end of a vendor's limit, as a text names it, to a time. Only [`event`] reads the clock.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use teamster_agents::agent::{LimitEnd, LocalTime};
use teamster_types::event::{RateLimit, RateLimitStatus};

/// The longest time until the end of a limit. A date without a year that is further away has probably passed.
const LONGEST_DAYS: i64 = 40;

/// A time of the day that passed less than this long ago is that of today. Its clock and ours may differ.
const JUST_PASSED_MINUTES: i64 = 10;

/// Returns the event of a limit with this end. `None` if the end is not certain.
pub(super) fn event(end: &LimitEnd) -> Option<RateLimit> {
    let end = timestamp(end, Timestamp::now())?;
    Some(RateLimit::new(RateLimitStatus::Rejected).with_reset(Some(end.to_string().into())))
}

fn timestamp(end: &LimitEnd, now: Timestamp) -> Option<Timestamp> {
    match end {
        LimitEnd::At(at) => Timestamp::from_second(at.unix_timestamp()).ok(),
        LimitEnd::After(duration) => {
            // A part of a second would be too early.
            let seconds = i64::try_from(duration.as_secs()).ok()?.checked_add(1)?;
            let end = now.checked_add(SignedDuration::from_secs(seconds)).ok()?;
            Timestamp::from_second(end.as_second()).ok()
        }
        LimitEnd::Next(time) => next(time, now),
        _ => None,
    }
}

/// Returns the next occurrence of a local time.
fn next(time: &LocalTime, now: Timestamp) -> Option<Timestamp> {
    let zone = if time.zone == "UTC" { TimeZone::UTC } else { TimeZone::get(&time.zone).ok()? };
    let today = now.to_zoned_datetime(zone.clone()).date();
    let clock = Time::new(i8::try_from(time.hour).ok()?, i8::try_from(time.minute).ok()?, 0, 0).ok()?;
    let on = |date: Date| -> Option<Timestamp> {
        let at = DateTime::from_parts(date, clock).to_zoned_datetime(zone.clone()).ok()?;
        Some(at.timestamp())
    };
    let Some((month, day)) = time.date else {
        let earliest = now.checked_sub(SignedDuration::from_mins(JUST_PASSED_MINUTES)).ok()?;
        let days = [today, today.tomorrow().ok()?];
        return days.into_iter().filter_map(on).find(|at| *at >= earliest);
    };
    let date = |year: i16| Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok();
    if let Some(year) = time.year {
        return on(date(year)?);
    }
    let hours = LONGEST_DAYS * 24;
    let (earliest, latest) = (
        now.checked_sub(SignedDuration::from_hours(24)).ok()?,
        now.checked_add(SignedDuration::from_hours(hours)).ok()?,
    );
    let years = [today.year() - 1, today.year(), today.year() + 1];
    years.into_iter().filter_map(date).filter_map(on).find(|at| (earliest..=latest).contains(at))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn end(now: &str, text: &str) -> Option<String> {
        let failure = teamster_types::event::Failure::new(teamster_types::event::ErrorCode::RateLimit, text);
        let end = teamster_agents::agent::limit_end(&failure)?;
        timestamp(&end, now.parse().unwrap()).map(|at| at.to_string())
    }

    #[test]
    fn the_end_of_a_limit_is_the_next_occurrence_of_its_time() {
        for (now, text, expected) in [
            ("2026-10-03T12:00:00Z", "weekly limit · resets Oct 6, 1am (UTC)", Some("2026-10-06T01:00:00Z")),
            ("2026-12-30T12:00:00Z", "weekly limit · resets Jan 2, 1am (UTC)", Some("2027-01-02T01:00:00Z")),
            ("2026-11-28T12:00:00Z", "weekly limit · resets Oct 6, 1am (UTC)", None),
            ("2026-10-06T01:00:30Z", "weekly limit · resets Oct 6, 1am (UTC)", Some("2026-10-06T01:00:00Z")),
            ("2026-10-03T12:00:00Z", "limit · resets 12:53am (UTC)", Some("2026-10-04T00:53:00Z")),
            ("2026-10-03T12:00:00Z", "limit · resets 3pm (UTC)", Some("2026-10-03T15:00:00Z")),
            ("2026-10-03T15:00:20Z", "limit · resets 3pm (UTC)", Some("2026-10-03T15:00:00Z")),
            ("2026-10-03T12:00:00Z", "limit · resets Feb 30, 1am (UTC)", None),
            ("2026-10-03T12:00:00Z", "limit · resets 3pm (No/Where)", None),
            ("2026-10-03T12:00:00Z", "quota will reset after 21h9m9s.", Some("2026-10-04T09:09:10Z")),
        ] {
            assert_eq!(end(now, text).as_deref(), expected, "{now} {text}");
        }
    }

    #[test]
    fn a_duration_that_no_time_can_represent_is_no_end() {
        assert_eq!(timestamp(&LimitEnd::After(Duration::MAX), Timestamp::UNIX_EPOCH), None);
    }
}
