//! `teamster config show`: the values of the table `[serve]`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use teamster_gateway::config::file::store_file;

use crate::path_text::{home_relative, path_text};
use crate::plan::SystemInputs;
use crate::printable::{Printable, printable};
use crate::render::width_of_stdout;
use crate::serve::data_dir;
use crate::serve::values::{FILE_ONLY, ServeValues, Source};
use crate::settings::Origin;

/// The columns of the keys, and of values that are not long.
const KEY_COLUMNS: usize = 34;
const VALUE_COLUMNS: usize = 24;

/// The keys that are shown also with their built-in values: where the gateway listens, and what it works on.
const ALWAYS_SHOWN: [&str; 3] = ["agent", "listen", "permission"];

/// Writes each value with its origin. Without `all`, most built-in values are only counted.
pub(super) fn write(out: &mut impl Write, values: &ServeValues, all: bool) -> io::Result<()> {
    let mut rows: BTreeMap<&str, (Printable, Printable)> = BTreeMap::new();
    let mut hidden = 0_usize;
    for (key, (value, source)) in &values.values {
        if all || *source != Source::BuiltIn || ALWAYS_SHOWN.contains(&key.as_str()) {
            rows.insert(key, (text(value), source.text()));
        } else {
            hidden += 1;
        }
    }
    for (key, path) in defaults(values) {
        let value = path.map_or_else(|| "the directory of the start".into(), |path| home_relative(&path));
        rows.entry(key).or_insert((value, "built-in".into()));
    }
    for (key, (value, origin)) in &rows {
        row(key, value, origin).write_line(out)?;
    }
    for (list, count) in lists(values) {
        if count == 0 && !all {
            hidden += 1;
            continue;
        }
        if count == 0 {
            row(list, &"none".into(), &"built-in".into()).write_line(out)?;
            continue;
        }
        let line = values.section.line(list).unwrap_or(1);
        let origin = Origin::File { file: values.section.file.clone(), line, profile: None };
        row(list, &printable!("{} in the file", count), &origin.text()).write_line(out)?;
    }
    if hidden > 0 {
        printable!("serve: {} more keys have their built-in values (--all prints them)", hidden).write_line(out)?;
    }
    Ok(())
}

/// Returns the places that are used if nothing sets them. `None` is the directory in which the gateway starts.
fn defaults(values: &ServeValues) -> Vec<(&'static str, Option<PathBuf>)> {
    let data_dir = values.values.get("data_dir").and_then(|(value, _)| value.as_str()).map(PathBuf::from);
    let data_dir = data_dir.or_else(|| data_dir::default_directory(&SystemInputs));
    let mut defaults = vec![("directory", None)];
    if let Some(data_dir) = data_dir {
        defaults.extend(store_file(None, &data_dir).ok().map(|store| ("store", Some(store))));
        defaults.push(("data_dir", Some(data_dir)));
    }
    defaults
}

/// Returns the JSON document of the values.
pub(super) fn document(values: &ServeValues) -> Map<String, Value> {
    let entry = |(key, (value, source)): (&String, &(Value, Source))| {
        let origin = match source {
            Source::BuiltIn => json!({ "source": "built-in" }),
            Source::Compat => json!({ "source": "compat" }),
            Source::Option(name) => json!({ "source": "option", "option": name }),
            Source::Setting(Origin::Machine) => json!({ "source": "machine" }),
            Source::Setting(Origin::Variable(name)) => json!({ "source": "environment", "variable": name }),
            Source::Setting(Origin::File { file, line, .. }) => {
                json!({ "source": "file", "file": path_text(file), "line": line })
            }
        };
        (format!("serve.{key}"), json!({ "value": value, "origin": origin }))
    };
    let counts = lists(values).into_iter().map(|(list, count)| (format!("serve.{list}"), json!({ "count": count })));
    let defaults = defaults(values).into_iter().map(|(key, path)| {
        let value = path.as_deref().map(path_text);
        (format!("serve.{key}"), json!({ "value": value, "origin": { "source": "built-in" } }))
    });
    // What is set replaces the default.
    defaults.chain(values.values.iter().map(entry)).chain(counts).collect()
}

/// Returns the number of entries of each array of tables.
fn lists(values: &ServeValues) -> [(&'static str, usize); 3] {
    let table = &values.section.table;
    let [rules, hooks, webhooks] = FILE_ONLY;
    [(rules, table.rules.len()), (hooks, table.hooks.len()), (webhooks, table.webhooks.len())]
}

fn text(value: &Value) -> Printable {
    match value {
        Value::String(text) => Printable::exact(text),
        Value::Array(items) => Printable::join(items.iter().map(text), ", "),
        other => Printable::exact(&other.to_string()),
    }
}

/// Returns the row of a value. An origin that does not fit gets a line of its own.
fn row(key: &str, value: &Printable, origin: &Printable) -> Printable {
    let key = printable!("serve.{}", Printable::exact(key));
    let columns = KEY_COLUMNS + value.columns().max(VALUE_COLUMNS) + origin.columns() + 2;
    let end = if columns < width_of_stdout() {
        printable!("{:<24} {}", value, origin)
    } else {
        printable!("{}\n{:<34} {}", value, "", origin)
    };
    printable!("{:<34} {}", key, end).wrapped(width_of_stdout(), KEY_COLUMNS + 1)
}
