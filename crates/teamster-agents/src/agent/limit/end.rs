//! Reads when a limit ends from the vendor's text. A time without its zone is not read, because it would be a guess.

use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// When a limit ends, as a text names it. The driver, which has a clock, converts it to a time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitEnd {
    /// At this time.
    At(OffsetDateTime),
    /// After this duration.
    After(Duration),
    /// At the next occurrence of this time.
    Next(LocalTime),
}

/// A time of a day in a time zone. The text names no year, and may name no date.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalTime {
    /// The month, from 1, and the day of the month.
    pub date: Option<(u8, u8)>,
    /// The year, if the text names it.
    pub year: Option<i16>,
    /// The hour, from 0 to 23.
    pub hour: u8,
    /// The minute.
    pub minute: u8,
    /// The name of the time zone: `UTC`, or a name of the IANA database.
    pub zone: String,
}

/// The words before a duration, in lower case.
const BEFORE_DURATION: &[&str] =
    &["try again in ", "retry in ", "retry after ", "reset after ", "resets after ", "reset in ", "resets in "];

/// The words before a time, in lower case.
const BEFORE_TIME: &[&str] = &["resets ", "reset at ", "reset on ", "try again at ", "try again on "];

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Returns the end of the limit that a text names.
pub(super) fn of_text(text: &str) -> Option<LimitEnd> {
    // ASCII letters keep their length, so the positions are those of the text.
    let lower = text.to_ascii_lowercase();
    let after = |words: &&str| text.get(lower.find(*words)? + words.len()..);
    let duration = || BEFORE_DURATION.iter().filter_map(after).find_map(duration).map(LimitEnd::After);
    let time = || BEFORE_TIME.iter().filter_map(after).find_map(time);
    epoch(text).or_else(duration).or_else(time)
}

/// Returns the time after `limit reached|`, in seconds since 1970.
fn epoch(text: &str) -> Option<LimitEnd> {
    let (_, seconds) = text.split_once("limit reached|")?;
    let digits: String = seconds.chars().take_while(char::is_ascii_digit).collect();
    OffsetDateTime::from_unix_timestamp(digits.parse().ok()?).ok().map(LimitEnd::At)
}

/// Reads `21h9m9s`, `3 days 2 hours`, `3hr 45min` or `1.2s` at the start of a text.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum: Option<Duration> = None;
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Some((number, after)) = rest.split_at_checked(unit_at) else { return sum };
        let after = after.trim_start_matches(' ');
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let Some((unit, after)) = after.split_at_checked(end) else { return sum };
        let (Ok(number), Some(seconds)) = (number.parse::<f64>(), seconds_of(unit)) else { return sum };
        let Ok(part) = Duration::try_from_secs_f64(number * seconds) else { return sum };
        sum = sum.unwrap_or_default().checked_add(part);
        rest = after;
    }
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// Reads `Oct 6, 1am (UTC)`, `3:30pm (Europe/Berlin)`, `October 6th, 2026 at 1:00 AM UTC` or an RFC 3339 time at the start of
/// a text.
fn time(text: &str) -> Option<LimitEnd> {
    let words = text.split([' ', ',', '\n']).filter(|word| !word.is_empty());
    let mut words = words.filter(|word| !matches!(*word, "at" | "on")).peekable();
    if let Some(at) = words.peek().and_then(|word| OffsetDateTime::parse(word.trim_end_matches('.'), &Rfc3339).ok()) {
        return Some(LimitEnd::At(at));
    }
    let mut date = None;
    let mut year = None;
    if let Some(month) = words.peek().and_then(|word| month(word)) {
        words.next();
        let day = words.next()?.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        date = Some((month, day.parse().ok().filter(|day| (1..=31).contains(day))?));
        year = words.peek().filter(|word| word.len() == 4).and_then(|word| word.parse().ok());
        if year.is_some() {
            words.next();
        }
    }
    let word = words.next()?.to_ascii_lowercase();
    let half = words.peek().map(|word| word.to_ascii_lowercase()).filter(|word| word == "am" || word == "pm");
    if half.is_some() {
        words.next();
    }
    let (hour, minute) = clock(&(word + half.as_deref().unwrap_or_default()))?;
    let zone = zone(words.next()?)?;
    Some(LimitEnd::Next(LocalTime { date, year, hour, minute, zone }))
}

fn month(word: &str) -> Option<u8> {
    let name = word.trim_end_matches('.').to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| name.starts_with(month))?;
    u8::try_from(at + 1).ok()
}

/// Reads `1am`, `12:53am` or `15:00`.
fn clock(word: &str) -> Option<(u8, u8)> {
    let half = ["am", "pm"].into_iter().find(|half| word.ends_with(half));
    let number = half.and_then(|half| word.strip_suffix(half)).unwrap_or(word);
    let (hour, minute) = match number.split_once(':') {
        Some((hour, minute)) => (hour.parse::<u8>().ok()?, minute.parse::<u8>().ok()?),
        None => (number.parse().ok().filter(|_| half.is_some())?, 0),
    };
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("pm") => hour % 12 + 12,
        Some(_) => hour % 12,
        None => hour,
    };
    (hour < 24 && minute < 60).then_some((hour, minute))
}

/// Reads `(Europe/Berlin)`, `(UTC)`, `UTC` or `GMT`.
fn zone(word: &str) -> Option<String> {
    let word = word.trim_end_matches('.');
    let name = word.strip_prefix('(').and_then(|word| word.strip_suffix(')')).unwrap_or(word);
    let is_certain = name.contains('/') || matches!(name, "UTC" | "GMT" | "Z");
    is_certain.then(|| if name.contains('/') { name.to_owned() } else { "UTC".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the expected values are options")]
    fn next(date: Option<(u8, u8)>, year: Option<i16>, hour: u8, minute: u8, zone: &str) -> Option<LimitEnd> {
        Some(LimitEnd::Next(LocalTime { date, year, hour, minute, zone: zone.to_owned() }))
    }

    #[test]
    fn a_time_is_read_if_its_zone_is_named() {
        for (text, expected) in [
            ("You've hit your weekly limit · resets Oct 6, 1am (UTC)", next(Some((10, 6)), None, 1, 0, "UTC")),
            ("limit · resets 12:53am (UTC)", next(None, None, 0, 53, "UTC")),
            ("limit · resets 12pm (Europe/Berlin)", next(None, None, 12, 0, "Europe/Berlin")),
            ("It will reset at 15:30 UTC.", next(None, None, 15, 30, "UTC")),
            ("resets October 6th, 2026 at 1:05 PM (Asia/Tokyo)", next(Some((10, 6)), Some(2026), 13, 5, "Asia/Tokyo")),
            ("Try again at Oct 6th, 2026 1:00 AM.", None),
            ("resets Monday, 1am (UTC)", None),
            ("resets 1am", None),
            ("resets 13pm (UTC)", None),
            ("resets 24:00 (UTC)", None),
            ("resets Oct 40, 1am (UTC)", None),
            ("resets soon", None),
            ("resets ", None),
        ] {
            assert_eq!(of_text(text), expected, "{text}");
        }
        let at = OffsetDateTime::from_unix_timestamp(1_795_308_795).unwrap();
        assert_eq!(of_text("Claude AI usage limit reached|1795308795"), Some(LimitEnd::At(at)));
        assert!(matches!(of_text("resets at 2026-10-06T01:00:00Z."), Some(LimitEnd::At(_))));
    }

    #[test]
    fn a_duration_is_the_sum_of_its_parts() {
        for (text, seconds) in [
            ("Your quota will reset after 21h9m9s.", Some(76_149.0)),
            ("It will reset in 3 days 2 hours. To continue, ...", Some(266_400.0)),
            ("Retry in 3hr 45min.", Some(13_500.0)),
            ("Please try again in 1.2s.", Some(1.2)),
            ("try again in 1 hour, and 5 minutes", Some(3_900.0)),
            ("try again in 99999999999999999999999999 days", None),
            ("try again in 5 apples", None),
            ("try again in ", None),
            ("retry after 20", None),
        ] {
            let expected = seconds.map(|seconds| LimitEnd::After(Duration::from_secs_f64(seconds)));
            assert_eq!(of_text(text), expected, "{text}");
        }
    }
}
