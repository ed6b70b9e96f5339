//! `cargo xtask bench growth`: what ten times the work costs.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::bench::form::Form;
use crate::bench::measure::Bench;
use crate::bench::plot::{Line, lines};
use crate::bench::results::Results;
use crate::bench::rows::Row;
use crate::bench::statistics::number;
use crate::bench::subjects::{COMMAND, LIBRARY, Subject};

/// Work in growing amounts.
struct Work {
    name: &'static str,
    /// What grows.
    x: &'static str,
    task: &'static str,
    subjects: &'static [Subject],
    points: &'static [u32],
    scenario: fn(u32) -> Value,
    /// The amount is that of runs at once, or of turns, and not in the scenario.
    is_runs: bool,
}

/// What a kind of work costs.
struct Axis {
    name: &'static str,
    title: &'static str,
    work: &'static Work,
    metric: &'static str,
    y: Cost,
}

#[derive(Clone, Copy)]
enum Cost {
    Cpu,
    PeakMemory,
    LiveMemory,
    Descriptors,
}

const EVENTS: Work = Work {
    name: "events",
    x: "deltas",
    task: "burst",
    subjects: &[LIBRARY, COMMAND],
    points: &[2_000, 20_000, 200_000, 2_000_000],
    scenario: |deltas| json!({ "deltas": deltas }),
    is_runs: false,
};
const LINE: Work = Work {
    name: "line",
    x: "bytes",
    task: "burst",
    subjects: &[LIBRARY, COMMAND],
    points: &[16_384, 163_840, 1_638_400, 16_384_000],
    scenario: |bytes| json!({ "deltas": 2, "tools": 1, "tool_bytes": bytes }),
    is_runs: false,
};
const LIVE: Work = Work {
    name: "live",
    x: "runs",
    task: "live",
    subjects: &[LIBRARY],
    points: &[1, 10, 100, 500],
    scenario: |_| json!({ "deltas": 200, "wait": true }),
    is_runs: true,
};
const TURNS: Work = Work {
    name: "turns",
    x: "turns",
    task: "turns",
    subjects: &[LIBRARY],
    points: &[10, 100, 1_000, 10_000],
    scenario: |_| json!({ "deltas": 20 }),
    is_runs: true,
};
const TOOLS: Work = Work {
    name: "tools",
    x: "calls",
    task: "burst",
    subjects: &[LIBRARY, COMMAND],
    points: &[10, 100, 1_000, 10_000],
    scenario: |tools| json!({ "deltas": 2, "tools": tools, "tool_bytes": 64, "tools_overlap": true }),
    is_runs: false,
};
const UNREAD: Work = Work {
    name: "unread",
    x: "deltas",
    task: "unread",
    subjects: &[LIBRARY],
    points: &[2_000, 20_000, 200_000, 2_000_000],
    scenario: |deltas| json!({ "deltas": deltas }),
    is_runs: false,
};
const ANSWER: Work = Work {
    name: "answer",
    x: "pieces of 4 KiB",
    task: "burst",
    subjects: &[LIBRARY, COMMAND],
    points: &[4, 40, 400, 4_000],
    scenario: |pieces| json!({ "deltas": pieces, "text_bytes": 4096 }),
    is_runs: false,
};

const WORK: &[&Work] = &[&EVENTS, &LINE, &LIVE, &TURNS, &TOOLS, &UNREAD, &ANSWER];

const fn axis(name: &'static str, title: &'static str, work: &'static Work, metric: &'static str, y: Cost) -> Axis {
    Axis { name, title, work, metric, y }
}

const AXES: &[Axis] = &[
    axis("events", "Deltas of a run", &EVENTS, "cpu_us", Cost::Cpu),
    axis("line", "Bytes of a line", &LINE, "cpu_us", Cost::Cpu),
    axis("live", "Live runs: memory", &LIVE, "total_mib", Cost::LiveMemory),
    axis("live-descriptors", "Live runs: descriptors", &LIVE, "descriptors", Cost::Descriptors),
    axis("turns", "Turns of a session: CPU", &TURNS, "cpu_us", Cost::Cpu),
    axis("turns-memory", "Turns of a session: memory", &TURNS, "peak_mib", Cost::PeakMemory),
    axis("turns-descriptors", "Turns of a session: descriptors", &TURNS, "descriptors", Cost::Descriptors),
    axis("tools", "Tool calls that are open at once", &TOOLS, "cpu_us", Cost::Cpu),
    axis("unread", "Retained events, read after the run: CPU", &UNREAD, "cpu_us", Cost::Cpu),
    axis("unread-memory", "Retained events, read after the run: memory", &UNREAD, "peak_mib", Cost::PeakMemory),
    axis("answer", "Retained text of an answer: CPU", &ANSWER, "cpu_us", Cost::Cpu),
    axis("answer-memory", "Retained text of an answer: memory", &ANSWER, "peak_mib", Cost::PeakMemory),
];

impl Cost {
    fn title(self) -> &'static str {
        match self {
            Self::Cpu => "CPU, µs",
            Self::PeakMemory => "peak memory, MiB",
            Self::LiveMemory => "memory of host and helpers, MiB",
            Self::Descriptors => "open descriptors of the host",
        }
    }

    /// Returns the heading of the cost of one unit of work, and its scale.
    fn of_one(self) -> (&'static str, f64) {
        match self {
            Self::Cpu => ("for one, ns", 1000.0),
            Self::PeakMemory | Self::LiveMemory => ("for one, KiB", 1024.0),
            Self::Descriptors => ("for one", 1.0),
        }
    }
}

/// Measures all axes.
pub(crate) fn measure(bench: &Bench<'_>, rounds: u32, results: &Results) -> Result<()> {
    for work in WORK {
        for point in work.points {
            results.save(&work.key(*point), &bench.measure(&work.row(*point), rounds)?)?;
        }
    }
    Ok(())
}

/// Returns the part of the page, and writes its plots. It is empty if nothing was measured.
pub(crate) fn section(results: &Results, plots: &Path) -> Result<String> {
    let mut text = String::new();
    for axis in AXES {
        let measured: Vec<Line> =
            axis.work.subjects.iter().filter_map(|subject| axis.line(*subject, results)).collect();
        if measured.is_empty() {
            continue;
        }
        let file = format!("growth-{}.svg", axis.name);
        lines(&measured, axis.title, (axis.work.x, axis.y.title()), &plots.join(&file))?;
        write!(text, "\n### {}\n\n{}\n![{}](performance/{file})\n", axis.title, axis.table(&measured), axis.title)?;
    }
    Ok(text)
}

impl Work {
    fn key(&self, point: u32) -> String {
        format!("growth-{}-{point}", self.name)
    }

    fn row(&self, point: u32) -> Row {
        Row {
            name: self.name,
            title: "",
            about: "",
            form: Form::Claude,
            task: self.task,
            runs: if self.is_runs { point } else { 1 },
            scenario: (self.scenario)(point),
            columns: &[],
            subjects: self.subjects.to_vec(),
            baseline: LIBRARY,
            left_out: &[],
        }
    }
}

impl Axis {
    fn line(&self, subject: Subject, results: &Results) -> Option<Line> {
        let median = |point: u32| Some(results.load(&self.work.key(point))?.spread(subject.name, self.metric)?.median);
        let points =
            self.work.points.iter().filter_map(|point| Some((f64::from(*point), median(*point)?))).collect::<Vec<_>>();
        (points.len() > 1).then(|| Line { name: subject.name.replace('`', ""), points })
    }

    /// A table with a line for each amount of work.
    fn table(&self, measured: &[Line]) -> String {
        let (of_one, scale) = self.y.of_one();
        let heads: Vec<String> =
            measured.iter().map(|line| format!(" {}: {} | {of_one} |", line.name, self.y.title())).collect();
        let heads = heads.concat();
        let mut text = format!("| {} |{heads}\n| --: |{}\n", self.work.x, " --: | --: |".repeat(measured.len()));
        for (shown, point) in self.work.points.iter().map(|point| (point, f64::from(*point))) {
            let cells = measured.iter().map(|line| match line.at(point) {
                Some(value) => format!(" {} | {} |", number(value), number(value * scale / point)),
                None => " – | – |".to_owned(),
            });
            let shown = if point < 100.0 { shown.to_string() } else { number(point) };
            text.extend([format!("| {shown} |")].into_iter().chain(cells).chain(["\n".to_owned()]));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_grows_in_steps_of_ten_or_less() {
        for work in WORK {
            assert!(work.points.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 10 * pair[0]), "{}", work.name);
        }
    }

    #[test]
    fn every_axis_shows_work_that_is_measured() {
        for axis in AXES {
            assert!(WORK.iter().any(|work| work.name == axis.work.name), "{}", axis.name);
        }
    }

    #[test]
    fn a_table_shows_what_one_costs() {
        let line = Line { name: "library".to_owned(), points: vec![(2_000.0, 4_000.0), (20_000.0, 50_000.0)] };
        let table = AXES[0].table(&[line]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[0], "| deltas | library: CPU, µs | for one, ns |");
        assert_eq!(lines[2], "| 2,000 | 4,000 | 2,000 |");
        assert_eq!(lines[4], "| 200,000 | – | – |");
    }
}
