//! The end of a run in one line: who answered, how much it took, and how to go on.

use std::time::Duration;

use teamster::event::{RunResult, Usage, UsageScope};

use crate::render::plain::{columns, one_line};

/// The closing lines: one, or two where the session's name does not fit; none where nothing is known.
pub(super) fn lines(result: &RunResult, width: usize) -> Vec<String> {
    let turns = result.num_turns.filter(|turns| *turns > 0);
    let turns = turns.map(|turns| format!("{turns} {}", if turns == 1 { "turn" } else { "turns" }));
    let cost = result.total_cost_usd.filter(|cost| *cost > 0.0).map(dollars);
    let known = [result.model.as_deref().map(one_line), turns, tokens(result), cost];
    let known: Vec<String> = known.into_iter().flatten().collect();
    let session = result.session_id.as_ref().map(|id| format!("session {}", one_line(id.as_str())));
    if known.is_empty() && session.is_none() {
        return Vec::new();
    }
    let took = duration(Duration::from_millis(result.duration_ms));
    let line = known.into_iter().chain([took]).collect::<Vec<_>>().join(" · ");
    match session {
        Some(session) if columns(&line) + columns(&session) + 3 > width => vec![line, session],
        Some(session) => vec![format!("{line} · {session}")],
        None => vec![line],
    }
}

/// Which calls the permissions refused, and what would allow them.
pub(super) fn denials(result: &RunResult) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for denial in &result.permission_denials {
        let name = one_line(&denial.tool_name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let names = names.join(", ");
    Some(format!("denied by the permissions: {names} (see --permission and --allow-tool)"))
}

/// A duration as people say it.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", (duration.as_secs_f64() * 10.0).floor() / 10.0),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

fn tokens(result: &RunResult) -> Option<String> {
    let usage = result.usage.as_ref().filter(|usage| !usage.is_zero())?;
    let Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, .. } = usage;
    let cached = cache_read_tokens.unwrap_or(0);
    let input = [*input_tokens, cached, cache_write_tokens.unwrap_or(0)].into_iter().fold(0, u64::saturating_add);
    let cached = if cached > 0 { format!(" ({} cached)", count(cached)) } else { String::new() };
    let scope = if result.usage_scope == Some(UsageScope::Session) { " in the whole session" } else { "" };
    Some(format!("{} in / {} out{cached}{scope}", count(input), count(*output_tokens)))
}

pub(crate) fn count(tokens: u64) -> String {
    let in_units = |unit: u64| format!("{}.{}", tokens / unit, tokens % unit / (unit / 10));
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => in_units(1_000) + "k",
        _ => in_units(1_000_000) + "M",
    }
}

pub(crate) fn dollars(amount: f64) -> String {
    if amount < 1.0 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!([999, 1_000, 12_345, 999_999, 1_250_000].map(count), ["999", "1.0k", "12.3k", "999.9k", "1.2M"]);
        assert_eq!([0.001_775, 0.5, 12.0].map(dollars), ["$0.0018", "$0.5000", "$12.00"]);
        let times = [40, 400, 59_990, 60_000, 3_599_000, 3_660_000].map(Duration::from_millis);
        assert_eq!(times.map(duration), ["0.0s", "0.4s", "59.9s", "1m 00s", "59m 59s", "1h 01m"]);
    }

    #[test]
    fn the_session_stands_whole_on_its_own_line_where_it_does_not_fit() {
        let mut result = RunResult::default();
        result.model = Some("claude-opus".into());
        result.session_id = Some("67c9c3e6-c7de-48a2-bc6b-8c0c662932f4".into());
        result.duration_ms = 4_200;
        let id = "session 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4";
        assert_eq!(lines(&result, 80), [format!("claude-opus · 4.2s · {id}")]);
        assert_eq!(lines(&result, 60), ["claude-opus · 4.2s".to_owned(), id.to_owned()]);
        assert_eq!(lines(&RunResult::default(), 80), Vec::<String>::new());
    }
}
