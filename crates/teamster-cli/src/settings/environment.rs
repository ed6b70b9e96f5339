//! The values of environment variables.

use super::assignment::{Assignment, Origin};
use super::table::{Kind, Setting};
use super::value::check;
use crate::config::ConfigError;
use crate::plan::Inputs;
use crate::printable::{Printable, printable};

/// Returns the values that the environment sets. An empty variable counts as unset. A `TEAMSTER_` variable replaces the older
/// variable of its setting.
///
/// An invalid value is a problem, or a note if the variable has a fallback.
pub(super) fn read(
    settings: &[Setting],
    inputs: &impl Inputs,
    problems: &mut Vec<ConfigError>,
    notes: &mut Vec<Printable>,
) -> Vec<Assignment> {
    let mut found = Vec::new();
    for setting in settings {
        let older = setting.older.map(|older| older.name);
        let set = [Some(&*setting.variable), older].into_iter().flatten();
        let set = set.filter_map(|name| Some((name, inputs.variable_os(name).filter(|value| !value.is_empty())?)));
        let Some((name, value)) = set.into_iter().next() else { continue };
        let values = match value.into_string() {
            Ok(text) => match setting.older.filter(|older| older.name == name) {
                Some(older) => (older.read)(&text),
                None => values(setting, &text),
            },
            Err(_) => Err("the value is not UTF-8".to_owned()),
        };
        let checked = values.and_then(|values| check(setting, &values).map(|()| values));
        match checked {
            Ok(values) => {
                let origin = Origin::Variable(name.to_owned());
                found.push(Assignment { id: setting.id.clone(), values, origin });
            }
            Err(problem) => {
                let error = ConfigError::Variable { name: name.to_owned(), problem };
                let fallback = setting.older.filter(|older| older.name == name).and_then(|older| older.fallback);
                let Some(fallback) = fallback.map(|fallback| fallback()) else {
                    problems.push(error);
                    continue;
                };
                notes.push(printable!("{}; {} is used", Printable::error(&error), Printable::exact(&fallback)));
                let origin = Origin::Variable(name.to_owned());
                found.push(Assignment { id: setting.id.clone(), values: vec![fallback], origin });
            }
        }
    }
    found
}

/// Returns the values in the text of a variable. A list has one value per line; rules and names are also separated by commas.
fn values(setting: &Setting, text: &str) -> Result<Vec<String>, String> {
    match setting.kind {
        Kind::One => Ok(vec![text.to_owned()]),
        Kind::Switch => match &*text.to_ascii_lowercase() {
            "true" | "1" | "yes" | "on" => Ok(vec!["true".to_owned()]),
            "false" | "0" | "no" | "off" => Ok(vec!["false".to_owned()]),
            _ => Err(format!("invalid value {text:?}: use true or false")),
        },
        Kind::List => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let has_commas = setting.value_name() == "RULE" || setting.arg.get_value_delimiter().is_some();
            Ok(if has_commas {
                lines.flat_map(teamster::backend::split_rules).collect()
            } else {
                lines.map(str::to_owned).collect()
            })
        }
    }
}
