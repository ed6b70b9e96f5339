//! What `teamster doctor` tells of agents' configuration files that runs have changed, and what `--restore` did about it.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use teamster::config::{ConfigError, How, Recovery, Restored, Survey};

use crate::doctor::path_text;
use crate::printable::{Printable, chain, printable};

/// Which files have entries of runs.
pub(crate) fn write_survey(out: &mut impl Write, survey: &Survey) -> io::Result<()> {
    printable!("configuration files: {} changed for live runs", survey.live.len()).write(out)?;
    match survey.leftovers.len() {
        0 => printable!(", nothing left by crashes"),
        count => printable!(", {} left by crashes; `teamster doctor --restore` restores them", count),
    }
    .write_line(out)?;
    for path in &survey.leftovers {
        printable!("  left         {}", path).write_line(out)?;
    }
    write_problems(out, &survey.problems)
}

/// What a recovery did.
pub(crate) fn write_recovery(out: &mut impl Write, recovery: &Recovery) -> io::Result<()> {
    for restored in &recovery.restored {
        let state = if is_whole(restored) { "restored" } else { "left" };
        let told = Printable::message(&told(restored));
        printable!("  {:<11}  {}: {}", state, &restored.path, told).write_line(out)?;
    }
    write_problems(out, &recovery.problems)?;
    let state = if is_clean(recovery) { "nothing is left by crashes" } else { "not everything could be restored" };
    let count = recovery.restored.len();
    printable!("configuration files: {} changed for live runs, {} looked after; {}", recovery.live, count, state)
        .write_line(out)
}

/// Whether nothing is left of any crash.
pub(crate) fn is_clean(recovery: &Recovery) -> bool {
    recovery.problems.is_empty() && recovery.restored.iter().all(is_whole)
}

fn is_whole(restored: &Restored) -> bool {
    restored.changed.is_empty() && !matches!(restored.how, How::Left { .. })
}

fn told(restored: &Restored) -> String {
    let how = match &restored.how {
        How::Exactly => "it is what it was".to_owned(),
        How::EditKept => "the runs' entries are out; what was edited meanwhile stays".to_owned(),
        How::Left { why, original: Some(original) } => format!("{why}; what stood in it is in {}", path_text(original)),
        How::Left { why, .. } => why.to_string(),
        _ => "the crashed runs' entries are out".to_owned(),
    };
    if restored.changed.is_empty() {
        return how;
    }
    format!("{how}; changed by somebody since, and left: {}", restored.changed.join(", "))
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

/// What is unknown is left out.
fn restored_document(restored: &Restored) -> Map<String, Value> {
    let original = match &restored.how {
        How::Left { original: Some(original), .. } => Some(path_text(original).into()),
        _ => None,
    };
    let changed = (!restored.changed.is_empty()).then(|| json!(restored.changed));
    let known = [
        ("path", Some(path_text(&restored.path).into())),
        ("restored", Some(is_whole(restored).into())),
        ("told", Some(told(restored).into())),
        ("original", original),
        ("changed", changed),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
