//! Prints what `teamster config set` and `teamster config unset` did.

use std::path::Path;

use super::set::{self, Changed, SetError};
use crate::exit;
use crate::path_text::home_relative;
use crate::plan::{Inputs as _, SystemInputs};
use crate::printable::{Printable, printable};
use crate::render::{write_error, write_notice};
use crate::runtime::report_usage_error;
use crate::settings::Setting;

/// Sets a value. Returns the exit code.
pub(super) fn set(path: &Path, key: &str, values: &[String], settings: &[Setting]) -> u8 {
    let changed = match set::set(path, key, values, settings, &SystemInputs) {
        Ok(changed) => changed,
        Err(error) => return report(path, &error),
    };
    let Changed { key, value, line, .. } = &changed;
    let name = key.rsplit_once('.').filter(|_| key.starts_with("defaults.")).map_or(key.as_str(), |(_, name)| name);
    let value = Printable::message(value.as_deref().unwrap_or_default());
    let code = print(&printable!("{}:{}: {} = {}", home_relative(path), *line, Printable::exact(name), value));
    note_override(&changed, settings);
    remaining(&changed, code)
}

/// Removes a value. Returns the exit code.
pub(super) fn unset(path: &Path, key: &str, settings: &[Setting]) -> u8 {
    match set::unset(path, key, settings, &SystemInputs) {
        Ok(Some(changed)) => {
            let key = Printable::exact(&changed.key);
            remaining(&changed, print(&printable!("{}: {} is removed", home_relative(path), key)))
        }
        Ok(None) => print(&printable!("{} is not set in {}", Printable::exact(key), home_relative(path))),
        Err(error) => report(path, &error),
    }
}

fn print(text: &Printable) -> u8 {
    match text.write_line(&mut anstream::stdout()) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}

/// Notes that a variable overrides the value.
fn note_override(changed: &Changed, settings: &[Setting]) {
    let setting = settings.iter().find(|setting| changed.setting.as_ref() == Some(&setting.id));
    let Some(setting) = setting else { return };
    let variables = std::iter::once(setting.variable.as_str()).chain(setting.older.map(|older| older.name));
    let is_set = |name: &&str| SystemInputs.variable_os(name).is_some_and(|value| !value.is_empty());
    if let Some(name) = variables.into_iter().find(is_set) {
        write_notice(&printable!("the variable {} overrides it in this shell", Printable::exact(name)));
    }
}

/// Reports the problems that the file still has. Returns the exit code.
fn remaining(changed: &Changed, code: u8) -> u8 {
    for problem in &changed.problems {
        write_error(&mut anstream::stderr(), &Printable::error(problem), None);
    }
    if changed.problems.is_empty() { code } else { exit::FAILURE }
}

fn report(path: &Path, error: &SetError) -> u8 {
    let shown = home_relative(path);
    match error {
        SetError::Broken(problems) | SetError::Invalid(problems) => {
            for problem in problems {
                write_error(&mut anstream::stderr(), &Printable::error(problem), None);
            }
            let hint = printable!("{} is unchanged", shown);
            write_error(&mut anstream::stderr(), &Printable::error(error), Some(&hint));
            exit::USAGE
        }
        SetError::Io(error) => {
            let problem = printable!("cannot change {}: {}", shown, Printable::error(error));
            write_error(&mut anstream::stderr(), &problem, None);
            exit::FAILURE
        }
        SetError::Key(_) | SetError::Unknown(..) | SetError::SeveralValues(_) => {
            report_usage_error(&Printable::error(error), Some("teamster config show --all lists the settings".into()))
        }
        SetError::Text(_) => report_usage_error(&printable!("{}: {}", shown, Printable::error(error)), None),
    }
}
