//! The sums of the journal's entries by day, agent, model or directory.

use std::cmp::Ordering;
use std::collections::HashMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use teamster::event::{Usage, UsageScope};

use super::entry::{Entry, Outcome};

/// The maximum number of rows.
const MAX_ROWS: usize = 10_000;

/// The maximum number of sessions whose totals are kept.
const MAX_SESSIONS: usize = 1_000_000;

/// The row for keys beyond the limit.
const OTHERS: &str = "(others)";

/// The row of runs whose model is unknown.
const UNKNOWN: &str = "(unknown)";

/// The key by which runs are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum By {
    Day,
    Agent,
    Model,
    Directory,
}

impl By {
    /// Returns the name of the first column.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Directory => "directory",
        }
    }
}

/// The sums of some runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) runs: u64,
    pub(super) failed: u64,
    pub(super) usage: Usage,
    /// The sum of the known costs; `None` if none is known.
    pub(super) cost_usd: Option<f64>,
    /// The number of runs whose cost is unknown.
    pub(super) without_cost: u64,
    /// The number of runs whose tokens are unknown.
    pub(super) without_usage: u64,
}

/// The sums by key, and the sum of all.
#[derive(Debug)]
pub(super) struct Totals {
    by: By,
    since: Option<Timestamp>,
    zone: TimeZone,
    rows: HashMap<String, Sum>,
    pub(super) all: Sum,
    /// The latest total of each session of an agent that reports only totals of its sessions.
    sessions: HashMap<(String, String), Usage>,
}

impl Totals {
    /// Creates sums of the entries since a time. Days are those of the time zone.
    pub(super) fn new(by: By, since: Option<Timestamp>, zone: TimeZone) -> Self {
        Self { by, since, zone, rows: HashMap::new(), all: Sum::default(), sessions: HashMap::new() }
    }

    /// Adds an entry. Entries of a session must be added in their order.
    pub(super) fn add(&mut self, entry: &Entry) {
        let usage = self.usage_of(entry);
        if self.since.is_some_and(|since| entry.time < since) {
            return;
        }
        let key = match self.by {
            By::Day => self.zone.to_datetime(entry.time).date().to_string(),
            By::Agent => entry.agent.clone(),
            By::Model => entry.model.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
            By::Directory => entry.directory.clone(),
        };
        let is_full = self.rows.len() >= MAX_ROWS && !self.rows.contains_key(&key);
        let row = self.rows.entry(if is_full { OTHERS.to_owned() } else { key }).or_default();
        for sum in [row, &mut self.all] {
            sum.add(entry, usage.as_ref());
        }
    }

    /// Returns the tokens of a run. Of a session's total, those since its previous entry are the run's own.
    fn usage_of(&mut self, entry: &Entry) -> Option<Usage> {
        let usage = entry.usage.clone()?;
        let (Some(UsageScope::Session), Some(session)) = (&entry.usage_scope, &entry.session_id) else {
            return Some(usage);
        };
        let key = (entry.agent.clone(), session.clone());
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(&key) {
            return None;
        }
        match self.sessions.insert(key, usage.clone()) {
            Some(earlier) => Some(usage.since(&earlier)),
            // The total includes turns that the journal does not have.
            None => (!entry.resumed).then_some(usage),
        }
    }

    /// Returns the rows: days in their order, others by falling number of tokens.
    pub(super) fn rows(&self) -> Vec<(&str, &Sum)> {
        let mut rows: Vec<_> = self.rows.iter().map(|(key, sum)| (key.as_str(), sum)).collect();
        rows.sort_by(|(one, a), (other, b)| {
            let by_tokens = if self.by == By::Day { Ordering::Equal } else { b.tokens().cmp(&a.tokens()) };
            by_tokens.then_with(|| one.cmp(other))
        });
        rows
    }
}

impl Sum {
    fn add(&mut self, entry: &Entry, usage: Option<&Usage>) {
        self.runs += 1;
        self.failed += u64::from(entry.outcome != Outcome::Success);
        match usage {
            Some(usage) => self.usage += usage,
            None => self.without_usage += 1,
        }
        match entry.cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0) {
            Some(cost) => *self.cost_usd.get_or_insert(0.0) += cost,
            None => self.without_cost += 1,
        }
    }

    /// Returns all tokens.
    fn tokens(&self) -> u64 {
        let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, .. } = self.usage;
        let parts = [output_tokens, cache_read_tokens.unwrap_or(0), cache_write_tokens.unwrap_or(0)];
        parts.into_iter().fold(input_tokens, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use teamster::RunResult;

    use super::super::entry::tests::entry;
    use super::*;

    fn result(input: u64, output: u64, cost: Option<f64>) -> RunResult {
        let mut result = RunResult::default();
        (result.usage, result.total_cost_usd) = (Some(Usage::new(input, output)), cost);
        result
    }

    fn totals(by: By, since: Option<&str>, entries: &[Entry]) -> Totals {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let mut totals = Totals::new(by, since.map(|since| since.parse().unwrap()), zone);
        for entry in entries {
            totals.add(entry);
        }
        totals
    }

    fn shown(totals: &Totals) -> Vec<(String, u64, u64)> {
        totals.rows().into_iter().map(|(key, sum)| (key.to_owned(), sum.runs, sum.tokens())).collect()
    }

    #[test]
    fn runs_are_summed_by_the_local_day_or_by_another_key() {
        let mut second = entry("2026-11-23T22:30:00Z", "codex", &result(1000, 1, None));
        second.model = Some("gpt".to_owned());
        let entries = [entry("2026-11-23T21:59:59Z", "claude", &result(1, 2, Some(0.5))), second];
        let row = |key: &str, runs, tokens| (key.to_owned(), runs, tokens);
        let by_day = totals(By::Day, None, &entries);
        assert_eq!(shown(&by_day), [row("2026-11-23", 1, 3), row("2026-11-24", 1, 1001)]);
        assert_eq!((by_day.all.runs, by_day.all.cost_usd, by_day.all.without_cost), (2, Some(0.5), 1));
        let by = |by| shown(&totals(by, None, &entries));
        assert_eq!(by(By::Agent), [row("codex", 1, 1001), row("claude", 1, 3)]);
        assert_eq!(by(By::Model), [row("gpt", 1, 1001), row("(unknown)", 1, 3)]);
        assert_eq!(by(By::Directory), [row("/p", 2, 1004)]);
        let recent = totals(By::Agent, Some("2026-11-23T22:00:00Z"), &entries);
        assert_eq!(shown(&recent), [row("codex", 1, 1001)]);
    }

    #[test]
    fn totals_of_a_session_are_counted_once() {
        let total = |session: &str, tokens: u64, resumed: bool| {
            let mut result = result(tokens, 0, None);
            (result.session_id, result.usage_scope) = (Some(session.into()), Some(UsageScope::Session));
            let mut entry = entry("2026-11-24T07:00:00Z", "codex", &result);
            entry.resumed = resumed;
            entry
        };
        let entries = [total("a", 100, false), total("b", 7, false), total("a", 150, true), total("c", 900, true)];
        let found = totals(By::Agent, None, &entries);
        assert_eq!((found.all.tokens(), found.all.runs, found.all.without_usage), (157, 4, 1));
        let after = totals(By::Agent, Some("2026-11-24T08:00:00Z"), &entries);
        assert_eq!(after.all, Sum::default());
    }

    #[test]
    fn costs_that_are_no_amount_are_unknown() {
        let entries =
            [Some(-1.0), Some(f64::INFINITY), None].map(|cost| entry("2026-11-24T07:00:00Z", "a", &result(1, 1, cost)));
        let found = totals(By::Agent, None, &entries);
        assert_eq!((found.all.cost_usd, found.all.without_cost), (None, 3));
    }
}
