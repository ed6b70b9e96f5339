//! The next time of a schedule, and the check of one.
//!
//! # Clock changes
//!
//! An expression whose hour is fixed means times of the day. Each fires once a day: a time that the clock jumps over fires at
//! the jump, and a time that the clock shows twice fires at the first one. An expression whose hour is a wildcard (`*`) means
//! an interval: it fires whenever the clock shows a matching time, so its distance stays the real one.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp as Instant};
use teamster_store::Timestamp;

use super::body::{ScheduleBody, ScheduleError, ScheduleLimits};
use super::cron::Expression;

/// The longest text of a schedule's message, in bytes.
const MAX_TEXT: usize = 100_000;

/// The number of times that are compared with the minimum interval.
const CHECKED_TIMES: usize = 100;

/// The number of clock changes that a search passes. There are at most a few a year.
const MAX_CHANGES: usize = 10_000;

/// Returns the first time of a schedule after another time. `None` if there is none.
///
/// # Errors
/// The schedule is invalid.
pub fn next_time(body: &ScheduleBody, after: Timestamp) -> Result<Option<Timestamp>, ScheduleError> {
    let zone = zone(&body.time_zone)?;
    let after = instant(after);
    let next = match (&body.cron, &body.at) {
        (Some(cron), None) => next_of_cron(&Expression::parse(cron)?, &zone, after),
        (None, Some(at)) => Some(parse_at(at, &zone)?).filter(|at| *at > after),
        _ => return Err(ScheduleError::new("cron", "or at must be set, and not both")),
    };
    Ok(next.map(|next| Timestamp::from_millis(next.as_millisecond())))
}

/// Checks a new schedule, and returns its first time.
///
/// # Errors
/// It is invalid, it never fires, or it fires too often.
pub fn check(body: &ScheduleBody, limits: ScheduleLimits, now: Timestamp) -> Result<Timestamp, ScheduleError> {
    if body.text.trim().is_empty() {
        return Err(ScheduleError::new("text", "must not be empty: it is the message of the schedule"));
    }
    if body.text.len() > MAX_TEXT {
        return Err(ScheduleError::new("text", format!("must have at most {MAX_TEXT} bytes")));
    }
    let next = next_time(body, now)?;
    let Some(next) = next else {
        return Err(match &body.at {
            Some(at) => ScheduleError::new("at", format!("must be in the future; {at} has passed")),
            None => ScheduleError::new("cron", "never fires: no date matches it"),
        });
    };
    if let Some(cron) = &body.cron {
        check_interval(&Expression::parse(cron)?, limits.min_interval, now)?;
    }
    Ok(next)
}

fn check_interval(expression: &Expression, min: Duration, now: Timestamp) -> Result<(), ScheduleError> {
    // Clock changes are ignored here: an interval that is shorter once a year does not make an expression invalid.
    let start = Offset::UTC.to_datetime(instant(now));
    let times: Vec<DateTime> = expression.times(start).take(CHECKED_TIMES).collect();
    let shortest = times.iter().zip(times.iter().skip(1)).map(|(first, second)| second.duration_since(*first)).min();
    match shortest {
        Some(shortest) if shortest < SignedDuration::try_from(min).unwrap_or(SignedDuration::MAX) => {
            let (shortest, min) = (shortest.unsigned_abs(), humantime::format_duration(min));
            let shortest = humantime::format_duration(shortest);
            Err(ScheduleError::new(
                "cron",
                format!("fires after {shortest}, and the shortest allowed interval is {min}"),
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the time zone with this IANA name.
fn zone(name: &str) -> Result<TimeZone, ScheduleError> {
    TimeZone::get(name).map_err(|_| {
        ScheduleError::new(
            "timeZone",
            format!("must be an IANA name such as \"Europe/London\" or \"UTC\"; {name:?} is unknown"),
        )
    })
}

/// Reads one time: an instant, or a time on the wall clock of the zone.
fn parse_at(text: &str, zone: &TimeZone) -> Result<Instant, ScheduleError> {
    if let Ok(instant) = text.parse::<Instant>() {
        return Ok(instant);
    }
    let local: Result<DateTime, _> = text.parse();
    let has_time = text.contains(['T', 't', ' ']);
    let found = local.ok().filter(|_| has_time).and_then(|local| once(zone, local));
    found.ok_or_else(|| {
        let problem = format!("must be a time such as \"2026-03-01T09:00:00Z\" or, in the time zone, \"2026-03-01T09:00\"; {text:?} is none");
        ScheduleError::new("at", problem)
    })
}

fn next_of_cron(expression: &Expression, zone: &TimeZone, after: Instant) -> Option<Instant> {
    if expression.is_interval() {
        return next_of_interval(expression, zone, after);
    }
    // The instants of the times on the wall clock never decrease.
    let start = zone.to_datetime(after);
    expression.times(start).map_while(|local| once(zone, local)).find(|instant| *instant > after)
}

/// Returns the next instant at which the wall clock shows a matching time.
fn next_of_interval(expression: &Expression, zone: &TimeZone, after: Instant) -> Option<Instant> {
    let (mut from, mut inclusive) = (after, false);
    for _ in 0..MAX_CHANGES {
        let offset = zone.to_offset(from);
        let local = expression.next(offset.to_datetime(from), inclusive)?;
        let found = offset.to_timestamp(local).ok()?;
        let change = zone.following(from).next().map(|change| change.timestamp());
        match change {
            // The clock changes before it shows that time.
            Some(change) if change <= found => (from, inclusive) = (change, true),
            _ => return Some(found),
        }
    }
    None
}

/// Returns the one instant of a time on the wall clock: the first of two, or that of the clock change which skips it.
fn once(zone: &TimeZone, local: DateTime) -> Option<Instant> {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
        AmbiguousOffset::Gap { before, .. } => {
            // With the old offset, the time would follow the change, or be at the change itself.
            let late = before.to_timestamp(local).ok()?.checked_add(SignedDuration::from_secs(1)).ok()?;
            zone.preceding(late).next().map(|change| change.timestamp())
        }
    }
}

pub(super) fn instant(at: Timestamp) -> Instant {
    let bound = if at.as_millis() < 0 { Instant::MIN } else { Instant::MAX };
    Instant::from_millisecond(at.as_millis()).unwrap_or(bound)
}

#[cfg(test)]
mod tests;
