//! What `teamster doctor` tells of live runs and of what crashes left, and what `--sweep` did about that.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use teamster::ledger::{Cleared, KnownRun, LedgerError, Left, Survey, Sweep};

use crate::doctor::{chain, shown};

/// What the ledger holds.
pub(crate) fn write_survey(out: &mut impl Write, survey: &Survey) -> io::Result<()> {
    write!(out, "runs: {} live", survey.live.len())?;
    match survey.leftovers.len() {
        0 => writeln!(out, ", nothing left by crashes")?,
        count => writeln!(out, ", {count} left by crashes; `teamster doctor --sweep` ends and removes them")?,
    }
    write_rest(out, &survey.left, &survey.problems)
}

/// What a sweep did.
pub(crate) fn write_sweep(out: &mut impl Write, sweep: &Sweep) -> io::Result<()> {
    for Cleared { run, ended, .. } in &sweep.cleared {
        write!(out, "  removed      {}{}", run.path.display(), described(run))?;
        for (index, process) in ended.iter().enumerate() {
            let before = if index == 0 { "; ended " } else { ", " };
            write!(out, "{before}{} ({})", process.pid, process.name)?;
        }
        writeln!(out)?;
    }
    write_rest(out, &sweep.left, &sweep.problems)?;
    let state = if sweep.is_clean() { "nothing is left by crashes" } else { "not everything could be swept" };
    writeln!(out, "runs: {} live, {} swept; {state}", sweep.live, sweep.cleared.len())
}

fn write_rest(out: &mut impl Write, left: &[Left], problems: &[LedgerError]) -> io::Result<()> {
    for left in left {
        writeln!(out, "  left         {}: {}", left.path.display(), left.reason)?;
    }
    for problem in problems {
        writeln!(out, "  problem      {}", chain(problem))?;
    }
    Ok(())
}

/// What runs there, as far as its entry tells.
fn described(run: &KnownRun) -> String {
    let began = run.began.map(|began| format!("since {}", humantime::format_rfc3339_seconds(began)));
    let told: Vec<String> = run.label.clone().into_iter().chain(began).collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join(" ")) }
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

/// What is unknown is left out.
fn run_document(run: &KnownRun) -> Map<String, Value> {
    let began = run.began.map(|began| humantime::format_rfc3339_seconds(began).to_string());
    let known = [("path", Some(shown(&run.path))), ("agent", run.label.clone()), ("began", began)];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect()
}

fn left_document(left: &[Left]) -> Value {
    left.iter().map(|left| json!({ "path": shown(&left.path), "reason": left.reason.to_string() })).collect()
}
