//! The targets, and whether the last results meet them.

use crate::bench::results::{Measured, Results};
use crate::bench::rows::Row;
use crate::bench::statistics::number;
use crate::bench::subjects::{COMMAND, LIBRARY, RAW, Subject, TYPED};

struct Target {
    promise: &'static str,
    row: &'static str,
    subject: Subject,
    metric: &'static str,
    bound: Bound,
}

#[derive(Clone, Copy)]
enum Bound {
    /// At most so many times what another subject has.
    Times(Subject, f64),
    /// At most so much more than another subject has in the metric.
    Above(Subject, f64, &'static str),
    /// The best peer has at least so many times as much.
    BestPeer(f64),
    AtMost(f64),
}

const fn target(
    promise: &'static str,
    row: &'static str,
    subject: Subject,
    metric: &'static str,
    bound: Bound,
) -> Target {
    Target { promise, row, subject, metric, bound }
}

const CPU: &str = "cpu_us_per_event";

const TARGETS: &[Target] = &[
    target("library: at most 1.6 times the typed floor", "burst-claude", LIBRARY, CPU, Bound::Times(TYPED, 1.6)),
    target(
        "library, Claude Code: the best peer costs at least 3.5 times as much",
        "burst-claude",
        LIBRARY,
        CPU,
        Bound::BestPeer(3.5),
    ),
    target(
        "library, Codex exec: the best peer costs at least 3.5 times as much",
        "burst-codex-exec",
        LIBRARY,
        CPU,
        Bound::BestPeer(3.5),
    ),
    target(
        "library, Codex app-server: the best peer costs at least 3.5 times as much",
        "burst-codex-app",
        LIBRARY,
        CPU,
        Bound::BestPeer(3.5),
    ),
    target(
        "library, ACP: the best peer costs at least 3.5 times as much",
        "burst-acp",
        LIBRARY,
        CPU,
        Bound::BestPeer(3.5),
    ),
    target(
        "`--output ndjson`: at most 3 times the typed floor",
        "burst-claude",
        COMMAND,
        CPU,
        Bound::Times(TYPED, 3.0),
    ),
    target(
        "`--output ndjson`: memory at most 4 times an answer of 8 MiB",
        "answer-8m",
        COMMAND,
        "peak_mib",
        Bound::AtMost(32.0),
    ),
    target("write to consumer: p50 at most 3 times a bare pipe", "latency", LIBRARY, "p50_us", Bound::Times(RAW, 3.0)),
    target(
        "write to consumer: p99 at most 10 times a bare pipe",
        "latency",
        LIBRARY,
        "p99_us",
        Bound::Times(RAW, 10.0),
    ),
    target(
        "100 runs at once: p50 at most 3 times a bare pipe",
        "latency-100",
        LIBRARY,
        "p50_us",
        Bound::Times(RAW, 3.0),
    ),
    target(
        "100 runs at once: p99 at most 10 times a bare pipe",
        "latency-100",
        LIBRARY,
        "p99_us",
        Bound::Times(RAW, 10.0),
    ),
    target(
        "first event at most 1.5 ms after a raw spawn's, warm",
        "start",
        LIBRARY,
        "warm_ms",
        Bound::Above(RAW, 1.5, " ms"),
    ),
    target("`done` at most 1 ms after the CLI's exit", "start", LIBRARY, "done_ms", Bound::AtMost(1.0)),
    target("a stop of a tree that obeys within 20 ms", "stop", LIBRARY, "gone_ms", Bound::AtMost(20.0)),
    target(
        "a grandchild with standard output costs the drain period",
        "hold",
        LIBRARY,
        "hold_ms",
        Bound::AtMost(600.0),
    ),
    target("500 live runs in at most 150 MiB", "live-500", LIBRARY, "total_mib", Bound::AtMost(150.0)),
    target("a line of 16 MiB: at most 3 times its size", "tool-16m", LIBRARY, "peak_mib", Bound::AtMost(48.0)),
];

/// Returns the targets as Markdown. Targets whose rows were not measured here keep their lines of the earlier page.
pub(crate) fn markdown(rows: &[Row], results: &Results, earlier: &str) -> String {
    let mut text = "| target | measured | met |\n| --- | --: | --- |\n".to_owned();
    for target in TARGETS {
        let Some(row) = rows.iter().find(|row| row.name == target.row) else { continue };
        let judged = results.load(row.name).and_then(|measured| target.judge(row, &measured));
        text += &match judged {
            Some((measured, met)) => line(&[target.promise, &measured, met]),
            None => target.line_of(earlier).unwrap_or_else(|| line(&[target.promise, "–", "not measured"])),
        };
    }
    text
}

fn line(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

impl Target {
    /// Returns the target's line of a page.
    fn line_of(&self, page: &str) -> Option<String> {
        let start = format!("| {} | ", self.promise);
        page.lines().find(|line| line.starts_with(&start)).map(|line| format!("{line}\n"))
    }

    fn judge(&self, row: &Row, measured: &Measured) -> Option<(String, &'static str)> {
        let median = |subject: Subject| Some(measured.spread(subject.name, self.metric)?.median);
        let ours = median(self.subject)?;
        let (shown, met) = match self.bound {
            Bound::Times(other, times) => {
                let ratio = ours / median(other)?;
                (format!("{} times", number(ratio)), ratio <= times)
            }
            Bound::Above(other, most, unit) => {
                let more = ours - median(other)?;
                (format!("{}{unit}", number(more)), more <= most)
            }
            Bound::BestPeer(times) => {
                let peers = row.subjects.iter().filter(|subject| !subject.is_ours() && !subject.is_floor());
                let best = peers.filter_map(|peer| median(*peer)).min_by(f64::total_cmp)?;
                (format!("{} times", number(best / ours)), best / ours >= times)
            }
            Bound::AtMost(most) => (number(ours), ours <= most),
        };
        Some((shown, if met { "yes" } else { "no" }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::Sample;
    use crate::bench::rows::all;

    #[test]
    fn every_target_names_a_row_with_its_subject() {
        let rows = all();
        for target in TARGETS {
            let row = rows.iter().find(|row| row.name == target.row).expect(target.row);
            assert!(row.subjects.contains(&target.subject), "{}", target.promise);
            assert!(row.columns.iter().any(|column| column.metric == target.metric), "{}", target.promise);
            if let Bound::Times(other, _) | Bound::Above(other, ..) = target.bound {
                assert!(row.subjects.contains(&other), "{}", target.promise);
            }
        }
    }

    #[test]
    fn the_best_peer_decides() {
        let mut measured = Measured::default();
        for (name, cpu) in
            [("Teamster, library", 1.0), ("claude-agent-sdk (Python)", 9.0), ("@anthropic-ai/claude-agent-sdk", 3.0)]
        {
            measured.samples.insert(name.to_owned(), vec![Sample::from([(CPU.to_owned(), cpu)])]);
        }
        let judged = TARGETS[1].judge(&all()[0], &measured).unwrap();
        assert_eq!(judged, ("3.00 times".to_owned(), "no"));
    }
}
