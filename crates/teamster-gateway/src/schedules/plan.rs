//! The decision about a due schedule, as a pure function.

use std::time::Duration;

use teamster_store::Timestamp;

use super::body::{Missed, ScheduleBody, ScheduleError};
use super::times::next_time;

/// A time that is at most this late is on time: the gateway was busy or restarted.
const ON_TIME: Duration = Duration::from_mins(1);

/// The decision about a due schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Whether it fires now. Otherwise this time is skipped.
    pub(super) fires: bool,
    /// Its next time, which may be due already.
    pub(super) next: Option<Timestamp>,
}

/// Returns whether a due time is treated as on time.
pub(super) fn is_on_time(due: Timestamp, now: Timestamp) -> bool {
    due >= before(now, ON_TIME)
}

/// Decides about a schedule that is due.
pub(super) fn plan(body: &ScheduleBody, due: Timestamp, now: Timestamp) -> Result<Plan, ScheduleError> {
    let recent = before(now, ON_TIME);
    if is_on_time(due, now) {
        return Ok(Plan { fires: true, next: next_time(body, due)? });
    }
    // Times that are not missed fire separately.
    let next = next_time(body, before(recent, Duration::from_millis(1)))?;
    let oldest = before(now, Duration::from_secs(body.max_age_seconds)).max(due);
    let fires = match body.missed {
        Missed::Skip => false,
        // One late message replaces all missed times. Its age is that of the last of them.
        Missed::Once => next_time(body, before(oldest, Duration::from_millis(1)))?.is_some_and(|at| at < recent),
    };
    Ok(Plan { fires, next })
}

fn before(at: Timestamp, time: Duration) -> Timestamp {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(at.as_millis().saturating_sub(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn hourly(missed: Missed, max_age_seconds: u64) -> ScheduleBody {
        ScheduleBody {
            cron: Some("0 * * * *".to_owned()),
            at: None,
            time_zone: "UTC".to_owned(),
            text: "hello".to_owned(),
            author: "ann".to_owned(),
            missed,
            max_age_seconds,
            by_api: false,
            created_by: String::new(),
        }
    }

    fn at(hours: i64, seconds: i64) -> Timestamp {
        Timestamp::from_millis(hours * HOUR + seconds * 1000)
    }

    fn planned(body: &ScheduleBody, due: Timestamp, now: Timestamp) -> (bool, Option<Timestamp>) {
        let Plan { fires, next } = plan(body, due, now).unwrap();
        (fires, next)
    }

    #[test]
    fn a_time_that_is_seconds_late_is_on_time() {
        for missed in [Missed::Skip, Missed::Once] {
            assert_eq!(planned(&hourly(missed, 0), at(5, 0), at(5, 0)), (true, Some(at(6, 0))));
            assert_eq!(planned(&hourly(missed, 0), at(5, 0), at(5, 60)), (true, Some(at(6, 0))));
        }
    }

    #[test]
    fn missed_times_are_skipped_or_fire_once_late() {
        assert_eq!(planned(&hourly(Missed::Skip, 86_400), at(5, 0), at(8, 120)), (false, Some(at(9, 0))));
        assert_eq!(planned(&hourly(Missed::Once, 86_400), at(5, 0), at(8, 120)), (true, Some(at(9, 0))));
    }

    #[test]
    fn a_missed_time_beyond_its_age_is_skipped() {
        assert_eq!(planned(&hourly(Missed::Once, 600), at(5, 0), at(8, 599)), (true, Some(at(9, 0))));
        assert_eq!(planned(&hourly(Missed::Once, 600), at(5, 0), at(8, 601)), (false, Some(at(9, 0))));
        assert_eq!(planned(&hourly(Missed::Once, 0), at(5, 0), at(8, 601)), (false, Some(at(9, 0))));
    }

    #[test]
    fn a_time_that_is_due_now_fires_beside_missed_ones() {
        assert_eq!(planned(&hourly(Missed::Skip, 86_400), at(5, 0), at(8, 10)), (false, Some(at(8, 0))));
        assert_eq!(planned(&hourly(Missed::Skip, 86_400), at(8, 0), at(8, 10)), (true, Some(at(9, 0))));
    }

    #[test]
    fn a_single_time_fires_late_or_never() {
        let single =
            |missed| ScheduleBody { cron: None, at: Some("1970-01-01T05:00:00Z".to_owned()), ..hourly(missed, 86_400) };
        assert_eq!(planned(&single(Missed::Once), at(5, 0), at(20, 0)), (true, None));
        assert_eq!(planned(&single(Missed::Once), at(5, 0), at(30, 0)), (false, None));
        assert_eq!(planned(&single(Missed::Skip), at(5, 0), at(20, 0)), (false, None));
    }

    #[test]
    fn many_years_without_a_gateway_are_planned_at_once() {
        let minutely = ScheduleBody { cron: Some("* * * * *".to_owned()), ..hourly(Missed::Once, 86_400) };
        let now = at(24 * 365 * 50, 30);
        assert_eq!(planned(&minutely, at(5, 0), now), (true, Some(at(24 * 365 * 50, 0))));
    }
}
