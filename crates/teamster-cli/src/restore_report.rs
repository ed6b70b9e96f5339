//! The report of `teamster doctor` on agents' configuration files: which ones runs have changed, and the result of
//! `--restore`.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use teamster::config::{ConfigError, Recovery, RestoreOutcome, Restored, Survey};

use crate::path_text::path_text;
use crate::printable::{Printable, chain, printable};

/// Writes which files contain entries of runs. If there are none, only with `verbose`.
pub(crate) fn write_survey(out: &mut impl Write, survey: &Survey, verbose: bool) -> io::Result<()> {
    let Survey { live, leftovers, problems, .. } = survey;
    if !verbose && live.is_empty() && leftovers.is_empty() && problems.is_empty() {
        return Ok(());
    }
    printable!("configuration files: {} changed for live runs", survey.live.len()).write(out)?;
    match survey.leftovers.len() {
        0 => printable!(", nothing left by crashes"),
        count => printable!(", {} left by crashes; `teamster doctor --restore` restores them", count),
    }
    .write_line(out)?;
    for path in &survey.leftovers {
        printable!("  leftover     {}", path).write_line(out)?;
    }
    write_problems(out, &survey.problems)
}

/// Writes the result of a recovery.
pub(crate) fn write_recovery(out: &mut impl Write, recovery: &Recovery) -> io::Result<()> {
    for restored in &recovery.restored {
        let state = if is_complete(restored) { "restored" } else { "incomplete" };
        let outcome = Printable::message(&outcome_message(restored));
        printable!("  {:<11}  {}: {}", state, &restored.path, outcome).write_line(out)?;
    }
    write_problems(out, &recovery.problems)?;
    let state = if is_clean(recovery) { "nothing is left by crashes" } else { "not everything could be restored" };
    let count = recovery.restored.len();
    printable!("configuration files: {} changed for live runs, {} processed; {}", recovery.live, count, state)
        .write_line(out)
}

/// Returns whether no leftover of a crash remains.
pub(crate) fn is_clean(recovery: &Recovery) -> bool {
    recovery.problems.is_empty() && recovery.restored.iter().all(is_complete)
}

fn is_complete(restored: &Restored) -> bool {
    restored.changed.is_empty() && !matches!(restored.how, RestoreOutcome::NotRestored { .. })
}

fn outcome_message(restored: &Restored) -> String {
    let outcome = match &restored.how {
        RestoreOutcome::Exactly => "the original content is restored".to_owned(),
        RestoreOutcome::EditKept => "the runs' entries are removed; later edits are kept".to_owned(),
        RestoreOutcome::NotRestored { reason, original: Some(original) } => {
            format!("{reason}; the original content is in {}", path_text(original))
        }
        RestoreOutcome::NotRestored { reason, .. } => reason.to_string(),
        _ => "the crashed runs' entries are removed".to_owned(),
    };
    if restored.changed.is_empty() {
        return outcome;
    }
    format!("{outcome}; not removed, because changed since: {}", restored.changed.join(", "))
}

fn write_problems(out: &mut impl Write, problems: &[ConfigError]) -> io::Result<()> {
    problems.iter().try_for_each(|problem| printable!("  problem      {}", Printable::error(problem)).write_line(out))
}

pub(crate) fn survey_document(survey: &Survey) -> Value {
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| path_text(path)).collect::<Vec<_>>();
    json!({
        "live": paths(&survey.live),
        "leftovers": paths(&survey.leftovers),
        "problems": survey.problems.iter().map(|problem| chain(problem)).collect::<Vec<_>>(),
    })
}

pub(crate) fn recovery_document(recovery: &Recovery) -> Value {
    json!({
        "clean": is_clean(recovery),
        "live": recovery.live,
        "files": recovery.restored.iter().map(restored_document).collect::<Vec<_>>(),
        "problems": recovery.problems.iter().map(|problem| chain(problem)).collect::<Vec<_>>(),
    })
}

/// Returns the JSON object of a file. Unknown fields are omitted.
fn restored_document(restored: &Restored) -> Map<String, Value> {
    let original = match &restored.how {
        RestoreOutcome::NotRestored { original: Some(original), .. } => Some(path_text(original).into()),
        _ => None,
    };
    let changed = (!restored.changed.is_empty()).then(|| json!(restored.changed));
    let known = [
        ("path", Some(path_text(&restored.path).into())),
        ("restored", Some(is_complete(restored).into())),
        ("message", Some(outcome_message(restored).into())),
        ("original", original),
        ("changed", changed),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
