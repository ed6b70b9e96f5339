//! The report of `teamster doctor` on the ledger: live runs, leftovers of crashed runs, and the result of `--sweep`.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use teamster::ledger::{Cleared, KnownRun, LedgerError, Left, Survey, Sweep};

use crate::doctor::path_text;
use crate::printable::{Printable, chain, printable};

/// Writes what the ledger contains.
pub(crate) fn write_survey(out: &mut impl Write, survey: &Survey) -> io::Result<()> {
    printable!("runs: {} live", survey.live.len()).write(out)?;
    match survey.leftovers.len() {
        0 => printable!(", nothing left by crashes"),
        count => printable!(", {} left by crashes; `teamster doctor --sweep` kills and removes them", count),
    }
    .write_line(out)?;
    write_rest(out, &survey.left, &survey.problems)
}

/// Writes the result of a sweep.
pub(crate) fn write_sweep(out: &mut impl Write, sweep: &Sweep) -> io::Result<()> {
    for Cleared { run, ended, .. } in &sweep.cleared {
        printable!("  removed      {}{}", &run.path, description(run)).write(out)?;
        for (index, process) in ended.iter().enumerate() {
            let before = if index == 0 { "; killed " } else { ", " };
            printable!("{}{} ({})", before, process.pid, &process.name).write(out)?;
        }
        printable!("").write_line(out)?;
    }
    write_rest(out, &sweep.left, &sweep.problems)?;
    let state = if sweep.is_clean() { "nothing is left by crashes" } else { "not everything could be swept" };
    printable!("runs: {} live, {} swept; {}", sweep.live, sweep.cleared.len(), state).write_line(out)
}

fn write_rest(out: &mut impl Write, left: &[Left], problems: &[LedgerError]) -> io::Result<()> {
    for left in left {
        let reason = Printable::message(&left.reason.to_string());
        printable!("  skipped      {}: {}", &left.path, reason).write_line(out)?;
    }
    for problem in problems {
        printable!("  problem      {}", Printable::error(problem)).write_line(out)?;
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
        "left": left_document(&survey.left),
        "problems": survey.problems.iter().map(|problem| chain(problem)).collect::<Vec<_>>(),
    })
}

pub(crate) fn sweep_document(sweep: &Sweep) -> Value {
    let removed = |cleared: &Cleared| {
        let ended = cleared.ended.iter().map(|process| json!({ "pid": process.pid, "name": process.name }));
        let mut document = run_document(&cleared.run);
        document.insert("ended".to_owned(), ended.collect());
        document
    };
    json!({
        "clean": sweep.is_clean(),
        "live": sweep.live,
        "removed": sweep.cleared.iter().map(removed).collect::<Vec<_>>(),
        "left": left_document(&sweep.left),
        "problems": sweep.problems.iter().map(|problem| chain(problem)).collect::<Vec<_>>(),
    })
}

/// Returns the JSON object of a run. Unknown fields are omitted.
fn run_document(run: &KnownRun) -> Map<String, Value> {
    let began = run.began.map(|began| humantime::format_rfc3339_seconds(began).to_string());
    let known = [("path", Some(path_text(&run.path))), ("agent", run.label.clone()), ("began", began)];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

fn left_document(left: &[Left]) -> Value {
    left.iter().map(|left| json!({ "path": path_text(&left.path), "reason": left.reason.to_string() })).collect()
}
