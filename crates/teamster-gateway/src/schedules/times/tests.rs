//! Tests of the times of schedules.

use super::*;
use crate::event::rfc3339;
use crate::schedules::Missed;

fn cron(expression: &str, time_zone: &str) -> ScheduleBody {
    ScheduleBody {
        cron: Some(expression.to_owned()),
        at: None,
        time_zone: time_zone.to_owned(),
        text: "hello".to_owned(),
        author: "ann".to_owned(),
        missed: Missed::Once,
        max_age_seconds: 60,
        by_api: false,
        created_by: String::new(),
    }
}

fn at(text: &str, time_zone: &str) -> ScheduleBody {
    ScheduleBody { cron: None, at: Some(text.to_owned()), ..cron("", time_zone) }
}

fn time(text: &str) -> Timestamp {
    Timestamp::from_millis(text.parse::<Instant>().unwrap().as_millisecond())
}

/// Returns the following times, in the time zone.
fn times(body: &ScheduleBody, after: &str, count: usize) -> Vec<String> {
    let zone = TimeZone::get(&body.time_zone).unwrap();
    let first = next_time(body, time(after)).unwrap();
    std::iter::successors(first, |last| next_time(body, *last).unwrap())
        .take(count)
        .map(|next| jiff::ZonedDateTime::new(instant(next), zone.clone()).strftime("%m-%d %H:%M%:z").to_string())
        .collect()
}

fn problem(body: &ScheduleBody) -> String {
    check(body, ScheduleLimits::default(), time("2026-01-01T00:00:00Z")).unwrap_err().to_string()
}

#[test]
fn a_fixed_time_fires_once_a_day_in_london() {
    // The clock jumps from 01:00 to 02:00 on March 29, and back from 02:00 to 01:00 on October 25.
    let body = cron("30 1 * * *", "Europe/London");
    assert_eq!(
        times(&body, "2026-03-28T12:00:00Z", 2),
        ["03-29 02:00+01:00", "03-30 01:30+01:00"],
        "a missing time fires at the jump"
    );
    assert_eq!(times(&body, "2026-10-24T12:00:00Z", 2), ["10-25 01:30+01:00", "10-26 01:30+00:00"]);
    let body = cron("0 9,17 * * *", "Europe/London");
    assert_eq!(
        times(&body, "2026-03-28T12:00:00Z", 3),
        ["03-28 17:00+00:00", "03-29 09:00+01:00", "03-29 17:00+01:00"]
    );
}

#[test]
fn several_missing_times_fire_once_at_the_jump() {
    let body = cron("0,20,40 1 * * *", "Europe/London");
    assert_eq!(times(&body, "2026-03-29T00:00:00Z", 2), ["03-29 02:00+01:00", "03-30 01:00+01:00"]);
    let body = cron("0 1,2 * * *", "Europe/London");
    assert_eq!(times(&body, "2026-03-29T00:00:00Z", 2), ["03-29 02:00+01:00", "03-30 01:00+01:00"]);
    // The hour is fixed, so the schedule fires once in the repeated hour.
    let body = cron("*/30 1 * * *", "Europe/London");
    assert_eq!(
        times(&body, "2026-10-24T23:00:00Z", 3),
        ["10-25 01:00+01:00", "10-25 01:30+01:00", "10-26 01:00+00:00"]
    );
}

#[test]
fn a_wildcard_keeps_its_real_interval_over_clock_changes() {
    for (start, zone) in [
        ("2026-03-29T00:10:00Z", "Europe/London"),
        ("2026-10-25T00:10:00Z", "Europe/London"),
        ("2026-04-04T13:40:00Z", "Australia/Lord_Howe"),
        ("2026-10-03T14:40:00Z", "Australia/Lord_Howe"),
        ("2018-11-04T02:10:00Z", "America/Sao_Paulo"),
        ("2026-03-28T21:10:00Z", "Asia/Beirut"),
    ] {
        let body = cron("*/30 * * * *", zone);
        let mut last = next_time(&body, time(start)).unwrap().unwrap();
        for _ in 0..10 {
            let next = next_time(&body, last).unwrap().unwrap();
            assert_eq!(next.as_millis() - last.as_millis(), 30 * 60 * 1000, "{zone} at {}", rfc3339(next));
            last = next;
        }
    }
    let hourly = cron("0 * * * *", "Europe/London");
    let repeated = times(&hourly, "2026-10-24T23:30:00Z", 3);
    assert_eq!(repeated, ["10-25 01:00+01:00", "10-25 01:00+00:00", "10-25 02:00+00:00"]);
    assert_eq!(times(&cron("0 0-23 * * *", "Europe/London"), "2026-10-24T23:30:00Z", 3), repeated);
}

#[test]
fn a_missing_midnight_fires_at_the_jump() {
    // In São Paulo the clock jumped from 00:00 to 01:00 on November 4, 2018.
    let body = cron("0 0 * * *", "America/Sao_Paulo");
    assert_eq!(times(&body, "2018-11-03T12:00:00Z", 2), ["11-04 01:00-02:00", "11-05 00:00-02:00"]);
    // It went back from 00:00 to 23:00 on February 18, 2018.
    let body = cron("30 23 * * *", "America/Sao_Paulo");
    assert_eq!(times(&body, "2018-02-17T12:00:00Z", 2), ["02-17 23:30-02:00", "02-18 23:30-03:00"]);
    // In Beirut the clock jumps at midnight of the last Sunday in March.
    let body = cron("15 0 * * *", "Asia/Beirut");
    assert_eq!(times(&body, "2026-03-28T12:00:00Z", 2), ["03-29 01:00+03:00", "03-30 00:15+03:00"]);
    // Samoa had no December 30 in 2011.
    let body = cron("0 12 * * *", "Pacific/Apia");
    assert_eq!(
        times(&body, "2011-12-29T12:00:00Z", 3),
        ["12-29 12:00-10:00", "12-31 00:00+14:00", "12-31 12:00+14:00"]
    );
}

#[test]
fn a_change_of_half_an_hour_is_no_exception() {
    // On Lord Howe Island the clock jumps from 02:00 to 02:30 on October 4, and back from 02:00 to 01:30 on April 5.
    let body = cron("15 2 * * *", "Australia/Lord_Howe");
    assert_eq!(times(&body, "2026-10-03T12:00:00Z", 2), ["10-04 02:30+11:00", "10-05 02:15+11:00"]);
    let body = cron("45 1 * * *", "Australia/Lord_Howe");
    assert_eq!(times(&body, "2026-04-04T12:00:00Z", 2), ["04-05 01:45+11:00", "04-06 01:45+10:30"]);
}

#[test]
fn a_leap_day_is_waited_for() {
    let body = cron("0 12 29 2 *", "UTC");
    assert_eq!(rfc3339(next_time(&body, time("2026-01-01T00:00:00Z")).unwrap().unwrap()), "2028-02-29T12:00:00.000Z");
    assert_eq!(rfc3339(next_time(&body, time("2096-03-01T00:00:00Z")).unwrap().unwrap()), "2104-02-29T12:00:00.000Z");
    assert_eq!(
        rfc3339(next_time(&cron("0 12 L 2 *", "UTC"), time("2026-01-01T00:00:00Z")).unwrap().unwrap()),
        "2026-02-28T12:00:00.000Z"
    );
}

#[test]
fn one_time_is_an_instant_or_a_time_in_the_zone() {
    let next = |body: &ScheduleBody| next_time(body, time("2026-01-01T00:00:00Z")).unwrap().map(rfc3339);
    let expected = Some("2026-06-01T08:00:00.000Z".to_owned());
    for text in ["2026-06-01T09:00", "2026-06-01 09:00:00", "2026-06-01T08:00:00Z", "2026-06-01T10:00:00+02:00"] {
        assert_eq!(next(&at(text, "Europe/London")), expected, "{text}");
    }
    // A missing time is that of the jump, and a repeated time is the first.
    assert_eq!(next(&at("2026-03-29T01:30", "Europe/London")).unwrap(), "2026-03-29T01:00:00.000Z");
    assert_eq!(next(&at("2026-10-25T01:30", "Europe/London")).unwrap(), "2026-10-25T00:30:00.000Z");
    assert_eq!(next(&at("2025-12-31T23:59:59Z", "UTC")), None);
}

#[test]
fn an_invalid_expression_is_refused_with_the_field_that_is_wrong() {
    let refused = |expression: &str| problem(&cron(expression, "UTC"));
    for (expression, expected) in [
        ("61 * * * *", "cron has an invalid minute \"61\""),
        ("* 24 * * *", "cron has an invalid hour \"24\""),
        ("* * 0 * *", "cron has an invalid day of month \"0\""),
        ("* * * 13 *", "cron has an invalid month \"13\""),
        ("* * * * 8", "cron has an invalid day of week \"8\""),
        ("* * * JANUARY *", "cron has an invalid month \"JANUARY\""),
        ("5-1 * * * *", "cron has an invalid minute \"5-1\""),
        ("*/0 * * * *", "cron has an invalid minute \"*/0\""),
        ("* * * *", "cron must have 5 fields"),
        ("0 * * * * *", "cron must have 5 fields"),
        ("", "cron must have 5 fields"),
        ("@midnightly", "cron has no name \"@midnightly\""),
        ("0 0 30 2 *", "cron never fires"),
        ("0 0 31 4,6 *", "cron never fires"),
    ] {
        let problem = refused(expression);
        assert!(problem.starts_with(expected), "{expression}: {problem}");
    }
    assert!(problem(&cron(&"0,".repeat(1000), "UTC")).contains("at most 256"));
}

#[test]
fn a_schedule_must_be_complete_and_in_the_future() {
    assert_eq!(
        problem(&cron("* * * * *", "Mars/Olympus")).split(';').next().unwrap(),
        "timeZone must be an IANA name such as \"Europe/London\" or \"UTC\""
    );
    assert!(problem(&at("2025-06-01T09:00", "UTC")).starts_with("at must be in the future"));
    for text in ["tomorrow", "2026-06-01", "2026-02-30T09:00", "09:00", ""] {
        assert!(problem(&at(text, "UTC")).starts_with("at must be a time"), "{text}");
    }
    let both = ScheduleBody { at: Some("2026-06-01T09:00".to_owned()), ..cron("* * * * *", "UTC") };
    let neither = ScheduleBody { cron: None, ..cron("", "UTC") };
    for body in [both, neither] {
        assert_eq!(problem(&body), "cron or at must be set, and not both");
    }
    assert!(
        problem(&ScheduleBody { text: " ".to_owned(), ..cron("* * * * *", "UTC") })
            .starts_with("text must not be empty")
    );
}

#[test]
fn an_expression_that_fires_too_often_is_refused() {
    let limits = ScheduleLimits { min_interval: Duration::from_hours(1), per_conversation: 1 };
    let checked = |expression: &str| check(&cron(expression, "UTC"), limits, time("2026-01-01T00:00:00Z"));
    let error = checked("*/5 * * * *").unwrap_err().to_string();
    assert_eq!(error, "cron fires after 5m, and the shortest allowed interval is 1h");
    // The short interval does not come first.
    assert!(checked("0,59 0 * * *").is_err());
    assert!(checked("0 * * * *").is_ok());
}

#[test]
fn a_stored_schedule_keeps_its_format() {
    let body = cron("0 9 * * *", "Europe/London");
    let text = serde_json::to_string(&body).unwrap();
    assert_eq!(
        text,
        r#"{"cron":"0 9 * * *","timeZone":"Europe/London","text":"hello","author":"ann","missed":"once","maxAgeSeconds":60}"#
    );
    assert_eq!(serde_json::from_str::<ScheduleBody>(&text).unwrap(), body);
    let short: ScheduleBody =
        serde_json::from_str(r#"{"at":"2026-06-01T09:00","text":"hello","author":"ann"}"#).unwrap();
    assert_eq!((short.time_zone.as_str(), short.missed, short.max_age_seconds), ("UTC", Missed::Once, 86_400));
    assert!(serde_json::from_str::<ScheduleBody>(r#"{"at":"x","text":"hello","author":"ann","zone":"UTC"}"#).is_err());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { max_global_rejects: 0, ..Default::default() })]

    #[test]
    fn no_text_of_a_schedule_panics_or_loops(
        expression in proptest::option::of("[0-9*,/ -]{0,40}|[^\\x00]{0,40}"),
        at in proptest::option::of("[0-9TZ:+. -]{0,40}|[^\\x00]{0,40}"),
        time_zone in "UTC|Europe/London|Asia/Kolkata|[A-Za-z/_]{0,20}|[^\\x00]{0,20}",
        max_age_seconds in proptest::num::u64::ANY,
        now in proptest::num::i64::ANY,
    ) {
        let body = ScheduleBody { cron: expression, at, time_zone, max_age_seconds, ..cron("", "UTC") };
        // The result does not matter.
        _ = check(&body, ScheduleLimits::default(), Timestamp::from_millis(now));
    }
}
