//! `teamster config show`: each setting with its value and the origin of the value.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::path_text::path_text;
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;
use crate::settings::{Assignment, Kind, Origin, Resolution, Setting};

/// Writes the values in effect; with `all`, also the settings without a value.
pub(super) fn write(out: &mut impl Write, settings: &[Setting], resolution: &Resolution, all: bool) -> io::Result<()> {
    for setting in settings {
        let (value, origin) = match resolution.values.get(&setting.id) {
            Some(assignment) => (shown(setting, assignment), assignment.origin.text()),
            None => match built_in(setting) {
                Some(value) => (value, "built-in".into()),
                None if all => ("-".to_owned(), "not set".into()),
                None => continue,
            },
        };
        row(&Printable::exact(&setting.key), &Printable::exact(&value), &origin).write_line(out)?;
    }
    if let Some((file, is_used)) = &resolution.project {
        let state = if *is_used { "used" } else { "not used: its directory is not trusted" };
        printable!("project file: {} ({})", &file.path, state).write_line(out)?;
    }
    Ok(())
}

/// The columns of the keys, and of values that are not long.
const KEY_COLUMNS: usize = 24;
const VALUE_COLUMNS: usize = 24;

/// Returns the row of a setting. An origin that does not fit gets a line of its own.
fn row(key: &Printable, value: &Printable, origin: &Printable) -> Printable {
    let columns = KEY_COLUMNS + value.columns().max(VALUE_COLUMNS) + origin.columns() + 2;
    let end = if columns < width_of_stdout() {
        printable!("{:<24} {}", value, origin)
    } else {
        printable!("{}\n{:<24} {}", value, "", origin)
    };
    printable!("{:<24} {}", key, end).wrapped(width_of_stdout(), KEY_COLUMNS + 1)
}

/// Returns the JSON document of the values in effect.
pub(super) fn document(settings: &[Setting], resolution: &Resolution) -> Map<String, Value> {
    let entry = |setting: &Setting| {
        let assignment = resolution.values.get(&setting.id);
        let value = assignment.map(|assignment| shown(setting, assignment)).or_else(|| built_in(setting))?;
        let origin = match assignment.map(|assignment| &assignment.origin) {
            None => json!({ "source": "built-in" }),
            Some(Origin::Machine) => json!({ "source": "machine" }),
            Some(Origin::Variable(name)) => json!({ "source": "environment", "variable": name }),
            Some(Origin::File { file, line, profile }) => {
                json!({ "source": "file", "file": path_text(file), "line": line, "profile": profile })
            }
        };
        Some((setting.key.clone(), json!({ "value": value, "origin": origin })))
    };
    settings.iter().filter_map(entry).collect()
}

/// Returns a value as text. Values of variables are secrets, as may be those of inline MCP servers.
fn shown(setting: &Setting, assignment: &Assignment) -> String {
    let one = |value: &String| match value.split_once('=') {
        Some((name, _)) if setting.id == "env" => format!("{name}=..."),
        _ if setting.id == "mcp_config" && value.trim_start().starts_with('{') => "{...}".to_owned(),
        _ => value.clone(),
    };
    assignment.values.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn built_in(setting: &Setting) -> Option<String> {
    let value = setting.arg.get_default_values().first()?.to_str()?;
    (setting.kind != Kind::Switch).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_stays_in_its_column() {
        let value = "Review the change. ".repeat(20);
        let shown = row(&"append_system_prompt".into(), &Printable::exact(value.trim()), &"built-in".into());
        let lines: Vec<_> = shown.as_str().lines().collect();
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= width_of_stdout()), "{lines:?}");
        let (_, rest) = lines.split_first().unwrap();
        assert!(rest.iter().all(|line| line.find(|letter| letter != ' ') == Some(KEY_COLUMNS + 1)), "{lines:?}");
    }
}
