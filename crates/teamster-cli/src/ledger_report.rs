//! The report of `teamster doctor` on the ledger: live runs, leftovers of crashed runs, and the result of `--sweep`.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use teamster::supervision::ledger::{KnownRun, LedgerError, Removed, Skipped, Survey, Sweep};

use crate::path_text::path_text;
use crate::printable::{Printable, chain, printable};
use crate::render::width_of_stdout;

/// The indentation of further rows of a line.
const INDENT: usize = 15;

/// Writes what the ledger contains. If it is empty, only with `verbose`.
pub(crate) fn write_survey(out: &mut impl Write, survey: &Survey, verbose: bool) -> io::Result<()> {
    let Survey { live, leftovers, skipped, problems, .. } = survey;
    if !verbose && live.is_empty() && leftovers.is_empty() && skipped.is_empty() && problems.is_empty() {
        return Ok(());
    }
    printable!("runs: {} live", survey.live.len()).write(out)?;
    match survey.leftovers.len() {
        0 => printable!(", nothing left by crashes"),
        count => printable!(", {} left by crashes; `teamster doctor --sweep` kills and removes them", count),
    }
    .write_line(out)?;
    write_rest(out, &survey.skipped, &survey.problems)
}

/// Writes the result of a sweep.
pub(crate) fn write_sweep(out: &mut impl Write, sweep: &Sweep) -> io::Result<()> {
    for Removed { run, killed, .. } in &sweep.removed {
        printable!("  removed      {}{}", &run.path, description(run)).write(out)?;
        for (index, process) in killed.iter().enumerate() {
            let before = if index == 0 { "; killed " } else { ", " };
            printable!("{}{} ({})", before, process.pid, &process.name).write(out)?;
        }
        printable!("").write_line(out)?;
    }
    write_rest(out, &sweep.skipped, &sweep.problems)?;
    let state = if sweep.is_clean() { "nothing is left by crashes" } else { "not everything could be swept" };
    printable!("runs: {} live, {} swept; {}", sweep.live, sweep.removed.len(), state).write_line(out)
}

fn write_rest(out: &mut impl Write, skipped: &[Skipped], problems: &[LedgerError]) -> io::Result<()> {
    for entry in skipped {
        let reason = Printable::message(&entry.reason.to_string());
        printable!("  skipped      {}: {}", &entry.path, reason).wrapped(width_of_stdout(), INDENT).write_line(out)?;
    }
    for problem in problems {
        let line = printable!("  problem      {}", Printable::error(problem));
        line.wrapped(width_of_stdout(), INDENT).write_line(out)?;
    }
    Ok(())
}

/// Returns the agent and the start time of a run, as far as its entry contains them.
fn description(run: &KnownRun) -> Printable {
    let began = run.began.map(|began| format!("since {}", humantime::format_rfc3339_seconds(began)));
    let parts: Vec<String> = run.label.clone().into_iter().chain(began).collect();
    if parts.is_empty() { Printable::default() } else { printable!(" ({})", &parts.join(" ")) }
}

pub(crate) fn survey_document(survey: &Survey) -> Value {
    json!({
        "live": survey.live.iter().map(run_document).collect::<Vec<_>>(),
        "leftovers": survey.leftovers.iter().map(run_document).collect::<Vec<_>>(),
        "skipped": skipped_document(&survey.skipped),
        "problems": survey.problems.iter().map(|problem| chain(problem)).collect::<Vec<_>>(),
    })
}

pub(crate) fn sweep_document(sweep: &Sweep) -> Value {
    let removed = |removed: &Removed| {
        let killed = removed.killed.iter().map(|process| json!({ "pid": process.pid, "name": process.name }));
        let mut document = run_document(&removed.run);
        document.insert("killed".to_owned(), killed.collect());
        document
    };
    json!({
        "clean": sweep.is_clean(),
        "live": sweep.live,
        "removed": sweep.removed.iter().map(removed).collect::<Vec<_>>(),
        "skipped": skipped_document(&sweep.skipped),
        "problems": sweep.problems.iter().map(|problem| chain(problem)).collect::<Vec<_>>(),
    })
}

/// Returns the JSON object of a run. Unknown fields are omitted.
fn run_document(run: &KnownRun) -> Map<String, Value> {
    let began = run.began.map(|began| humantime::format_rfc3339_seconds(began).to_string());
    let known = [("path", Some(path_text(&run.path))), ("agent", run.label.clone()), ("began", began)];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

fn skipped_document(skipped: &[Skipped]) -> Value {
    skipped.iter().map(|entry| json!({ "path": path_text(&entry.path), "reason": entry.reason.to_string() })).collect()
}
