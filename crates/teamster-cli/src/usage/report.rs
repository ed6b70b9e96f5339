//! Prints the sums: a table for people, or one JSON document.

use std::io::IsTerminal as _;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::reader::Skipped;
use super::totals::{By, Sum, Totals};
use crate::printable::{Printable, printable};
use crate::render::pretty::closing::dollars;
use crate::render::width_of_stdout;

const HEAD: Style = Style::new().dimmed();
const TOTAL: Style = Style::new().bold();
const NAME: Style = AnsiColor::Cyan.on_default();

/// The names of the columns with numbers.
const COLUMNS: [&str; 6] = ["runs", "input", "cache read", "cache write", "output", "cost"];

/// The number of spaces between two columns.
const GAP: usize = 2;

/// The minimum width of a name.
const MIN_NAME: usize = 12;

/// Returns the table.
pub(super) fn table(by: By, totals: &Totals, home: Option<&str>) -> Printable {
    let width = if std::io::stdout().is_terminal() { width_of_stdout() } else { usize::MAX };
    table_of_width(by, totals, home, width)
}

fn table_of_width(by: By, totals: &Totals, home: Option<&str>, width: usize) -> Printable {
    let sums: Vec<_> = totals.rows().into_iter().map(|(key, sum)| (shown(by, key, home), numbers(sum))).collect();
    let all = (Printable::from("total"), numbers(&totals.all));
    let head = (Printable::from(by.name()), COLUMNS.map(Printable::from));
    let rows: Vec<_> = [&head].into_iter().chain(&sums).chain([&all]).collect();
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|(_, numbers)| numbers.get(column));
        cells.map(Printable::columns).max().unwrap_or(0)
    };
    let widths: [usize; COLUMNS.len()] = std::array::from_fn(widest);
    let of_numbers = widths.iter().map(|width| width + GAP).sum::<usize>();
    let name_width = rows.iter().map(|(name, _)| name.columns()).max().unwrap_or(0);
    let name_width = name_width.min(width.saturating_sub(of_numbers).max(MIN_NAME));
    let line = |(name, numbers): &(Printable, [Printable; COLUMNS.len()]), style: Style, name_style: Style| {
        let name = end_of(name, name_width);
        let mut line = printable!("{}{}", name.styled(name_style), spaces(name_width - name.columns()));
        for (number, width) in numbers.iter().zip(widths) {
            line.push(&printable!("{}{}", spaces(GAP + width - number.columns()), number.styled(style)));
        }
        line
    };
    let lines = sums.iter().map(|row| line(row, Style::new(), NAME));
    let total = (sums.len() > 1).then(|| line(&all, TOTAL, TOTAL));
    Printable::join([line(&head, HEAD, HEAD)].into_iter().chain(lines).chain(total), "\n")
}

/// Returns the key for people. In a path, the home directory is `~`.
fn shown(by: By, key: &str, home: Option<&str>) -> Printable {
    let in_home = home.filter(|home| by == By::Directory && home.len() > 1).and_then(|home| key.strip_prefix(home));
    match in_home.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => printable!("~{}", Printable::exact(rest)),
        None => Printable::exact(key),
    }
}

/// Truncates a name at its start: the end of a path distinguishes it.
fn end_of(name: &Printable, columns: usize) -> Printable {
    let mut kept = name.clone();
    let mut characters = name.as_str().chars();
    while kept.columns() >= columns.max(1) && name.columns() > columns && characters.next().is_some() {
        kept = Printable::exact(characters.as_str());
    }
    if name.columns() > columns { printable!("…{}", kept) } else { kept }
}

fn spaces(count: usize) -> Printable {
    Printable::join((0..count).map(|_| Printable::from(" ")), "")
}

fn numbers(sum: &Sum) -> [Printable; COLUMNS.len()] {
    let usage = &sum.usage;
    [
        grouped(sum.runs),
        grouped(usage.input_tokens),
        usage.cache_read_tokens.map_or("-".into(), grouped),
        usage.cache_write_tokens.map_or("-".into(), grouped),
        grouped(usage.output_tokens),
        sum.cost_usd.map_or("-".into(), dollars),
    ]
}

/// Formats a number with a comma before each three digits.
fn grouped(number: u64) -> Printable {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    Printable::exact(&text)
}

/// Returns notes on what the sums do not include.
pub(super) fn notes(totals: &Totals, skipped: Skipped) -> Vec<Printable> {
    let Sum { runs, without_cost, without_usage, .. } = totals.all;
    let mut notes = Vec::new();
    if without_cost > 0 && without_cost < runs {
        notes.push(printable!("the cost of {} of {} runs is unknown: not every agent reports it", without_cost, runs));
    }
    if without_usage > 0 {
        notes.push(printable!("the tokens of {} of {} runs are unknown", without_usage, runs));
    }
    if skipped.lines > 0 {
        let lines = if skipped.lines == 1 { "line" } else { "lines" };
        notes.push(printable!("{} {} skipped: incomplete, or not of the usage journal", skipped.lines, lines));
    }
    if skipped.has_older {
        notes.push("only the last 1 GiB of the usage journal is read".into());
    }
    notes
}

/// Returns the JSON document.
pub(super) fn document(by: By, since: Option<Timestamp>, totals: &Totals, skipped: Skipped) -> Value {
    let rows: Vec<Value> = totals
        .rows()
        .into_iter()
        .map(|(key, sum)| {
            let mut row = Map::from_iter([(by.name().to_owned(), key.into())]);
            row.extend(fields(sum));
            Value::Object(row)
        })
        .collect();
    json!({
        "by": by.name(),
        "since": since.map(|since| since.to_string()),
        "rows": rows,
        "total": fields(&totals.all),
        "skippedLines": skipped.lines,
        "olderLinesSkipped": skipped.has_older,
    })
}

fn fields(sum: &Sum) -> Map<String, Value> {
    let Sum { runs, failed, usage, cost_usd, without_cost, without_usage } = sum;
    let fields = json!({
        "runs": runs,
        "failedRuns": failed,
        "usage": usage,
        "costUsd": cost_usd,
        "runsWithoutCost": without_cost,
        "runsWithoutUsage": without_usage,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
