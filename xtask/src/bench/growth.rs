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

/// A kind of work in growing amounts.
struct Axis {
    name: &'static str,
    title: &'static str,
    /// The work.
    x: &'static str,
    task: &'static str,
    metric: &'static str,
    y: &'static str,
    subjects: &'static [Subject],
    points: &'static [u32],
    scenario: fn(u32) -> Value,
    /// The work is runs at once, or turns, and not in the scenario.
    is_runs: bool,
}

const AXES: &[Axis] = &[
    Axis {
        name: "events",
        title: "Deltas of a run",
        x: "deltas",
        task: "burst",
        metric: "cpu_us",
        y: "CPU, µs",
        subjects: &[LIBRARY, COMMAND],
        points: &[2_000, 20_000, 200_000, 2_000_000],
        scenario: |deltas| json!({ "deltas": deltas }),
        is_runs: false,
    },
    Axis {
        name: "line",
        title: "Bytes of a line",
        x: "bytes",
        task: "burst",
        metric: "cpu_us",
        y: "CPU, µs",
        subjects: &[LIBRARY, COMMAND],
        points: &[16_384, 163_840, 1_638_400, 16_384_000],
        scenario: |bytes| json!({ "deltas": 2, "tools": 1, "tool_bytes": bytes }),
        is_runs: false,
    },
    Axis {
        name: "live",
        title: "Live runs",
        x: "runs",
        task: "live",
        metric: "total_mib",
        y: "memory of host and helpers, MiB",
        subjects: &[LIBRARY],
        points: &[1, 10, 100, 500],
        scenario: |_| json!({ "deltas": 200, "wait": true }),
        is_runs: true,
    },
    Axis {
        name: "turns",
        title: "Turns of a session: CPU",
        x: "turns",
        task: "turns",
        metric: "cpu_us",
        y: "CPU, µs",
        subjects: &[LIBRARY],
        points: &[10, 100, 1_000, 10_000],
        scenario: |_| json!({ "deltas": 20 }),
        is_runs: true,
    },
    Axis {
        name: "turns-memory",
        title: "Turns of a session: memory",
        x: "turns",
        task: "turns",
        metric: "peak_mib",
        y: "peak memory, MiB",
        subjects: &[LIBRARY],
        points: &[10, 100, 1_000, 10_000],
        scenario: |_| json!({ "deltas": 20 }),
        is_runs: true,
    },
    Axis {
        name: "tools",
        title: "Tool calls that are open at once",
        x: "calls",
        task: "burst",
        metric: "cpu_us",
        y: "CPU, µs",
        subjects: &[LIBRARY, COMMAND],
        points: &[10, 100, 1_000, 10_000],
        scenario: |tools| json!({ "deltas": 2, "tools": tools, "tool_bytes": 64, "tools_overlap": true }),
        is_runs: false,
    },
];

/// Measures all axes.
pub(crate) fn measure(bench: &Bench<'_>, rounds: u32, results: &Results) -> Result<()> {
    for axis in AXES {
        for point in axis.points {
            results.save(&axis.key(*point), &bench.measure(&axis.row(*point), rounds)?)?;
        }
    }
    Ok(())
}

/// Returns the part of the page, and writes its plots. It is empty if nothing was measured.
pub(crate) fn section(results: &Results, plots: &Path) -> Result<String> {
    let mut text = String::new();
    for axis in AXES {
        let measured: Vec<Line> = axis.subjects.iter().filter_map(|subject| axis.line(*subject, results)).collect();
        if measured.is_empty() {
            continue;
        }
        let file = format!("growth-{}.svg", axis.name);
        lines(&measured, axis.title, (axis.x, axis.y), &plots.join(&file))?;
        write!(text, "\n### {}\n\n{}\n![{}](performance/{file})\n", axis.title, axis.table(&measured), axis.title)?;
    }
    Ok(text)
}

impl Axis {
    fn key(&self, point: u32) -> String {
        format!("growth-{}-{point}", self.name)
    }

    fn row(&self, point: u32) -> Row {
        Row {
            name: self.name,
            title: self.title,
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

    fn line(&self, subject: Subject, results: &Results) -> Option<Line> {
        let median = |point: u32| Some(results.load(&self.key(point))?.spread(subject.name, self.metric)?.median);
        let points =
            self.points.iter().filter_map(|point| Some((f64::from(*point), median(*point)?))).collect::<Vec<_>>();
        (points.len() > 1).then(|| Line { name: subject.name.replace('`', ""), points })
    }

    /// A table with a line for each amount of work.
    fn table(&self, measured: &[Line]) -> String {
        let (unit, scale) = if self.y.contains("MiB") { ("KiB", 1024.0) } else { ("ns", 1000.0) };
        let heads: Vec<String> =
            measured.iter().map(|line| format!(" {}: {} | for one, {unit} |", line.name, self.y)).collect();
        let heads = heads.concat();
        let mut text = format!("| {} |{heads}\n| --: |{}\n", self.x, " --: | --: |".repeat(measured.len()));
        for (shown, point) in self.points.iter().map(|point| (point, f64::from(*point))) {
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
        for axis in AXES {
            assert!(axis.points.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 10 * pair[0]), "{}", axis.name);
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
