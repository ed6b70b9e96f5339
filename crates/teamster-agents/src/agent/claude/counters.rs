//! What a turn has used, by counters that cover more than the turn.
//!
//! `modelUsage`, `total_cost_usd` and `duration_api_ms` of a result count from the start of the process, up to 2.1.276. From
//! 2.1.277 on they count from the start of the stored session: a process that resumes or forks a session starts with its totals.
//! `model_usage_since_last_result` counts one result alone (2.1.318 and newer, not 2.1.304, and not in the document of
//! `--output-format json`). Without it, the first result of a resumed session has no known baseline: its cost is omitted, and its
//! tokens are those of the main loop. All this was observed on 2.1.197, 2.1.276, 2.1.277, 2.1.304, 2.1.318 and 2.1.332.

use super::wire::{ApiUsage, ModelUsages, ResultLine};
use teamster_types::event::Usage;
use teamster_types::request::{Conversation, RunRequest};

/// The first version that counts the whole stored session.
const COUNTS_SESSION: [u32; 3] = [2, 1, 277];

/// The counters of a process.
#[derive(Debug)]
pub(super) struct Counters {
    /// Whether the process resumes a session, which may have totals of its own.
    resumes: bool,
    /// Whether the CLI counts the whole stored session, if its version is known.
    counts_session: Option<bool>,
    /// The totals of the last result.
    last: Option<Totals>,
    turn: Spent,
    /// Whether the CLI has started no turn since the last result. Another result then repeats it.
    is_repeated: bool,
}

/// What a turn has used. A field is `None` if it is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Spent {
    /// The tokens of all calls, also of subagents.
    pub(super) usage: Option<Usage>,
    pub(super) cost_usd: Option<f64>,
    pub(super) api_ms: Option<u64>,
    /// The number of results of the turn: more than one if the CLI started another turn by itself.
    results: u32,
}

/// The totals of a result. A counter that is zero is not reported, or was reset.
#[derive(Clone, Debug, Default)]
struct Totals {
    usage: Usage,
    cost_usd: f64,
    api_ms: u64,
}

impl Counters {
    pub(super) fn new(request: &RunRequest) -> Self {
        let resumes = request.conversation != Conversation::New;
        Self { resumes, counts_session: None, last: None, turn: Spent::default(), is_repeated: false }
    }

    /// Notes the version of the CLI.
    pub(super) fn set_version(&mut self, version: &str) {
        let mut numbers = version.split(|char: char| !char.is_ascii_digit()).map(str::parse::<u32>);
        if let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) = (numbers.next(), numbers.next(), numbers.next()) {
            self.counts_session = Some([major, minor, patch] >= COUNTS_SESSION);
        }
    }

    /// Starts another turn of the caller.
    pub(super) fn next_turn(&mut self) {
        (self.turn, self.is_repeated) = (Spent::default(), false);
    }

    /// Notes that the CLI has started a turn: that of the caller, or another one by itself.
    pub(super) fn turn_started(&mut self) {
        self.is_repeated = false;
    }

    /// Whether the next result repeats the last one.
    pub(super) fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Adds a result of the turn, unless it repeats one. Returns what the turn has used.
    pub(super) fn count(&mut self, line: &ResultLine<'_>) -> Spent {
        if std::mem::replace(&mut self.is_repeated, true) {
            return self.turn.clone();
        }
        let totals = Totals::of(line);
        let before = self.before(line, &totals);
        let result = of_result(line, &totals, before.as_ref());
        self.last = Some(totals.or(before.unwrap_or_default()));
        self.turn.add(result);
        self.turn.clone()
    }

    /// Returns the totals before this result; `None` if they are unknown.
    fn before(&self, line: &ResultLine<'_>, totals: &Totals) -> Option<Totals> {
        let counts_session = self.counts_session.unwrap_or(line.result_index.is_some());
        // Nothing was counted before, if all of the usage is that of this turn.
        let is_all = line.usage.as_ref().is_some_and(|usage| of_api(usage).total() == totals.usage.total());
        match &self.last {
            Some(last) => Some(last.clone()),
            None if self.resumes && counts_session && !is_all => None,
            None => Some(Totals::default()),
        }
    }
}

impl Spent {
    fn add(&mut self, result: Self) {
        if self.results == 0 {
            *self = result;
            return;
        }
        self.results += result.results;
        self.usage = match (self.usage.take(), result.usage) {
            (Some(mut sum), Some(usage)) => {
                sum += &usage;
                Some(sum)
            }
            (one, other) => one.or(other),
        };
        // A part of the cost would be a wrong cost.
        self.cost_usd = self.cost_usd.zip(result.cost_usd).map(|(one, other)| in_nanos(one + other));
        self.api_ms = self.api_ms.zip(result.api_ms).map(|(one, other)| one.saturating_add(other));
    }
}

impl Totals {
    fn of(line: &ResultLine<'_>) -> Self {
        Self {
            usage: line.model_usage.as_ref().map(sum_of).unwrap_or_default(),
            cost_usd: line.total_cost_usd.unwrap_or_default(),
            api_ms: line.duration_api_ms.unwrap_or_default(),
        }
    }

    /// Returns these totals, with the earlier ones in place of zeros.
    fn or(self, earlier: Self) -> Self {
        Self {
            usage: if self.usage.is_zero() { earlier.usage } else { self.usage },
            cost_usd: if self.cost_usd == 0.0 { earlier.cost_usd } else { self.cost_usd },
            api_ms: if self.api_ms == 0 { earlier.api_ms } else { self.api_ms },
        }
    }
}

/// Returns what was used since the result before. A total that is lower than before was reset in between (`/clear`).
fn of_result(line: &ResultLine<'_>, totals: &Totals, before: Option<&Totals>) -> Spent {
    let since = line.model_usage_since_last_result.as_ref();
    let main_loop = || line.usage.as_ref().map(of_api);
    let usage = match (since.map(sum_of), before) {
        (Some(usage), _) if !usage.is_zero() => Some(usage),
        (None, Some(_)) if totals.usage.is_zero() => main_loop(),
        (None, Some(before)) if totals.usage.total() < before.usage.total() => Some(totals.usage.clone()),
        (None, Some(before)) => Some(totals.usage.since(&before.usage)),
        // The result of a turn that exceeded its budget has zeros.
        (None, None) => main_loop().filter(|usage| !usage.is_zero()),
        (Some(_), _) => main_loop(),
    };
    let since_cost = since.and_then(|models| {
        let sum = models.values().map(|model| model.cost_usd).sum::<Option<f64>>()?;
        Some(if models.len() == 1 { sum } else { in_nanos(sum) })
    });
    let cost = |before: &Totals| {
        let total = line.total_cost_usd?;
        let is_difference = before.cost_usd > 0.0 && total >= before.cost_usd;
        Some(if is_difference { in_nanos(total - before.cost_usd) } else { total })
    };
    let api = |before: &Totals| {
        let total = line.duration_api_ms?;
        Some(total.checked_sub(before.api_ms).unwrap_or(total))
    };
    Spent { usage, cost_usd: since_cost.or_else(|| before.and_then(cost)), api_ms: before.and_then(api), results: 1 }
}

/// Rounds dollars to billionths, to remove the errors of binary fractions. No price is finer. The sum of no costs is 0, not -0.
fn in_nanos(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9 + 0.0
}

fn sum_of(models: &ModelUsages) -> Usage {
    let mut sum = Usage::default();
    for model in models.values() {
        sum += &Usage::new(model.input_tokens, model.output_tokens)
            .with_cache(Some(model.cache_read_input_tokens), Some(model.cache_creation_input_tokens));
    }
    sum
}

/// Converts the tokens of the Messages API.
pub(super) fn of_api(usage: &ApiUsage) -> Usage {
    Usage::new(usage.input_tokens, usage.output_tokens)
        .with_cache(usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
}
