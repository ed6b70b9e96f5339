//! Cron expressions: their errors, and their times on the wall clock. Time zones are not handled here: the cron library
//! does not use the date library of this crate.

use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use croner::time::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};
use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::body::ScheduleError;

/// The fields of an expression, in order.
const FIELDS: [&str; 5] = ["minute", "hour", "day of month", "month", "day of week"];

/// The longest expression.
const MAX_LENGTH: usize = 256;

/// A parsed expression.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    cron: Cron,
    /// Whether the hour is a wildcard, so that the expression means an interval and not times of the day.
    is_interval: bool,
}

impl Expression {
    /// Parses an expression of five fields, or a name such as `@daily`.
    pub(super) fn parse(text: &str) -> Result<Self, ScheduleError> {
        let invalid = |problem: String| ScheduleError::new("cron", problem);
        if text.len() > MAX_LENGTH {
            return Err(invalid(format!("must have at most {MAX_LENGTH} characters")));
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let is_name = matches!(fields.as_slice(), [name] if name.starts_with('@'));
        if !is_name && fields.len() != FIELDS.len() {
            let problem = format!(
                "must have 5 fields (minute hour day-of-month month day-of-week), such as \"0 9 * * 1-5\"; {text:?} has {}",
                fields.len()
            );
            return Err(invalid(problem));
        }
        let cron = parse(text)
            .map_err(|error| invalid(if is_name { unknown_name(text) } else { explain(&fields, &error) }))?;
        let every_hour = (0..24).all(|hour| cron.pattern.hour_match(hour).unwrap_or(false));
        let hour_has_wildcard = fields.get(1).is_some_and(|hour| hour.contains('*'));
        Ok(Self { is_interval: every_hour || hour_has_wildcard, cron })
    }

    /// Whether the expression means an interval: the hour is a wildcard.
    pub(super) const fn is_interval(&self) -> bool {
        self.is_interval
    }

    /// Returns the first time on the wall clock after another one, or at it if it is `inclusive`.
    pub(super) fn next(&self, after: DateTime, inclusive: bool) -> Option<DateTime> {
        let found = self.cron.find_next_occurrence(&WallClock(after), inclusive).ok()?;
        Some(found.0)
    }

    /// Returns the times on the wall clock after another one.
    pub(super) fn times(&self, after: DateTime) -> impl Iterator<Item = DateTime> {
        std::iter::successors(self.next(after, false), |last| self.next(*last, false))
    }
}

fn parse(text: &str) -> Result<Cron, CronError> {
    CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build().parse(text)
}

fn unknown_name(text: &str) -> String {
    format!("has no name {text:?}: use @hourly, @daily, @weekly, @monthly, @yearly or five fields")
}

/// Finds the field that is wrong: each one is parsed alone.
fn explain(fields: &[&str], error: &CronError) -> String {
    let alone = |at: usize, field: &str| {
        let mut others = ["*"; 5];
        if let Some(place) = others.get_mut(at) {
            *place = field;
        }
        parse(&others.join(" ")).err()
    };
    let found = fields.iter().zip(FIELDS).enumerate().find_map(|(at, (field, name))| {
        alone(at, field).map(|error| format!("has an invalid {name} {field:?}: {}", reason(&error)))
    });
    found.unwrap_or_else(|| format!("is invalid: {}", reason(error)))
}

fn reason(error: &CronError) -> String {
    match error {
        CronError::InvalidPattern(text) | CronError::IllegalCharacters(text) | CronError::ComponentError(text) => {
            text.clone()
        }
        other => other.to_string(),
    }
}

/// A time without a zone, as the library of cron expressions takes it. No such time is missing or ambiguous.
#[derive(Clone, Copy, Debug)]
struct WallClock(DateTime);

impl CronDateTime for WallClock {
    fn to_civil(&self) -> CivilDateTime {
        let part = |value: i8| u32::try_from(value).unwrap_or(0);
        let Self(time) = *self;
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(i32::from(time.year()), part(time.month()), part(time.day())),
            CivilTime::from_parts_unchecked(part(time.hour()), part(time.minute()), part(time.second())),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(u32::try_from(self.0.weekday().to_sunday_zero_offset()).unwrap_or(0))
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let part = |value: u32| i8::try_from(value).map_err(|_| CronError::InvalidDate);
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let (month, day) = (part(civil.month())?, part(civil.day())?);
        let (hour, minute, second) = (part(civil.hour())?, part(civil.minute())?, part(civil.second())?);
        let time = DateTime::new(year, month, day, hour, minute, second, 0);
        time.map(|time| Resolution::Single(Self(time))).map_err(|_| CronError::InvalidDate)
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(SignedDuration::from_secs(seconds)).ok().map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
