//! The summary of a run in one line: model, usage, cost, duration and session id.

use std::time::Duration;

use teamster::event::{RunResult, Usage, UsageScope};

use super::style::NOTICEABLE;
use crate::printable::{Printable, printable};

/// Returns the summary of a turn that waited for a person this long: one line, two if the session id does not fit, or none if nothing is known.
pub(super) fn lines(result: &RunResult, waited: Duration, width: usize) -> Vec<Printable> {
    let turns = result.num_turns.filter(|turns| *turns > 0);
    let turns = turns.map(|turns| printable!("{} {}", turns, if turns == 1 { "turn" } else { "turns" }));
    let cost = result.total_cost_usd.filter(|cost| *cost > 0.0).map(dollars);
    let known = [result.model.as_deref().map(Printable::exact), turns, tokens(result), cost];
    let known: Vec<Printable> = known.into_iter().flatten().collect();
    let session = result.session_id.as_ref().map(|id| printable!("session {}", Printable::exact(id.as_str())));
    if known.is_empty() && session.is_none() {
        return Vec::new();
    }
    let took = Duration::from_millis(result.duration_ms).saturating_sub(waited);
    let line = Printable::join(known.into_iter().chain([time(took, waited)]), " · ");
    match session {
        Some(session) if line.columns() + session.columns() + 3 > width => vec![line, session],
        Some(session) => vec![printable!("{} · {}", line, session)],
        None => vec![line],
    }
}

/// Formats the time of work, and apart from it the time for which it waited for a person.
pub(super) fn time(worked: Duration, waited: Duration) -> Printable {
    if waited < NOTICEABLE {
        return duration(worked);
    }
    printable!("{} + {} waiting for you", duration(worked), duration(waited))
}

/// Formats a duration with one or two units.
pub(crate) fn duration(duration: Duration) -> Printable {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => printable!("{}.{}s", seconds, duration.subsec_millis() / 100),
        60..3600 => printable!("{}m {}s", seconds / 60, two(seconds % 60)),
        _ => printable!("{}h {}m", seconds / 3600, two(seconds / 60 % 60)),
    }
}

/// Formats a number with two digits.
fn two(number: u64) -> Printable {
    printable!("{}{}", number / 10, number % 10)
}

fn tokens(result: &RunResult) -> Option<Printable> {
    let usage = result.usage.as_ref().filter(|usage| !usage.is_zero())?;
    let Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, .. } = usage;
    let cached = cache_read_tokens.unwrap_or(0);
    let input = [*input_tokens, cached, cache_write_tokens.unwrap_or(0)].into_iter().fold(0, u64::saturating_add);
    let cached = if cached > 0 { printable!(" ({} cached)", count(cached)) } else { Printable::default() };
    let scope = if result.usage_scope == Some(UsageScope::Session) { " in the whole session" } else { "" };
    Some(printable!("{} in{} / {} out{}", count(input), cached, count(*output_tokens), scope))
}

pub(crate) fn count(tokens: u64) -> Printable {
    let in_units =
        |unit: u64, name: &'static str| printable!("{}.{}{}", tokens / unit, tokens % unit / (unit / 10), name);
    match tokens {
        0..1_000 => printable!("{}", tokens),
        1_000..100_000 => in_units(1_000, "k"),
        100_000..1_000_000 => printable!("{}k", tokens / 1_000),
        _ => in_units(1_000_000, "M"),
    }
}

pub(crate) fn dollars(amount: f64) -> Printable {
    Printable::exact(&if amount < 1.0 { format!("${amount:.4}") } else { format!("${amount:.2}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_abbreviated() {
        assert_eq!(
            [999, 1_000, 12_345, 999_999, 1_250_000].map(count),
            ["999", "1.0k", "12.3k", "999k", "1.2M"].map(Printable::from)
        );
        assert_eq!([0.001_775, 0.5, 12.0].map(dollars), ["$0.0018", "$0.5000", "$12.00"].map(Printable::from));
        let times = [40, 400, 59_990, 60_000, 3_599_000, 3_660_000].map(Duration::from_millis);
        let shown = ["0.0s", "0.4s", "59.9s", "1m 00s", "59m 59s", "1h 01m"].map(Printable::from);
        assert_eq!(times.map(duration), shown);
    }

    #[test]
    fn a_session_id_that_does_not_fit_gets_a_separate_line() {
        let mut result = RunResult::default();
        result.model = Some("claude-opus".into());
        result.session_id = Some("67c9c3e6-c7de-48a2-bc6b-8c0c662932f4".into());
        result.duration_ms = 4_200;
        let id = "session 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4";
        assert_eq!(lines(&result, Duration::ZERO, 80), [printable!("claude-opus · 4.2s · {}", id)]);
        assert_eq!(lines(&result, Duration::ZERO, 60), [Printable::from("claude-opus · 4.2s"), id.into()]);
        let waited = lines(&result, Duration::from_secs(3), 90);
        assert_eq!(waited, [printable!("claude-opus · 1.2s + 3.0s waiting for you · {}", id)]);
        assert_eq!(lines(&RunResult::default(), Duration::ZERO, 80), Vec::<Printable>::new());
    }
}
