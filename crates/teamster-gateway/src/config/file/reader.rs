//! Reads the table `[serve]`. Every problem is reported, with its offset in the text.
//!
//! A value that cannot be read is reported and removed, and the table is read again without it. So one problem does not hide
//! another.

use std::collections::BTreeMap;

use schemars::schema_for;
use serde::Deserialize as _;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeArray, DeValue, ValueDeserializer};

use super::message::plain;
use super::table::ServeTable;

/// A position in the text of the file, in bytes from its start.
pub type Offset = usize;

/// The offset of each key, by its path, such as `limits.max_running` or `rules.0.agent`.
pub type Offsets = BTreeMap<String, Offset>;

/// What is wrong in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The offset, if the value is from the file.
    pub at: Option<Offset>,
    /// What is wrong, and how to correct it.
    pub problem: String,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The values.
    pub table: ServeTable,
    /// Where they are.
    pub offsets: Offsets,
    /// What is wrong, in the order of the text.
    pub problems: Vec<Problem>,
    /// The keys whose values were removed.
    pub removed: Vec<String>,
}

/// The largest number of problems that are reported.
const MAX_PROBLEMS: usize = 100;

/// Reads the value of the key `serve`.
pub fn read(mut value: Spanned<DeValue<'_>>) -> Parsed {
    let mut parsed = Parsed::default();
    if !value.get_ref().is_table() {
        let problem = "serve must be a table, as in [serve]".to_owned();
        parsed.problems.push(Problem { at: Some(value.span().start), problem });
        return parsed;
    }
    let schema = schema();
    Walk { root: &schema, problems: &mut parsed.problems, offsets: &mut parsed.offsets }.value(&mut value, &schema, "");
    loop {
        let error = match ServeTable::deserialize(ValueDeserializer::from(value.clone())) {
            Ok(table) => {
                parsed.table = table;
                break;
            }
            Err(error) => error,
        };
        let at = error.span().map_or(value.span().start, |span| span.start);
        let removed = remove(&mut value, at);
        let problem = match removed.and_then(|offset| key_at(&parsed.offsets, offset)) {
            Some(key) => {
                parsed.removed.push(key.to_owned());
                format!("serve.{key}: {}", plain(key, error.message()))
            }
            None => plain("", error.message()),
        };
        parsed.problems.push(Problem { at: Some(at), problem });
        if removed.is_none() || parsed.problems.len() > MAX_PROBLEMS {
            break;
        }
    }
    parsed.problems.sort_by_key(|problem| problem.at);
    parsed
}

/// Returns the JSON schema of the table.
pub fn schema() -> Value {
    schema_for!(ServeTable).to_value()
}

/// Compares the keys of a table with those of its schema.
struct Walk<'a> {
    root: &'a Value,
    problems: &'a mut Vec<Problem>,
    offsets: &'a mut Offsets,
}

impl Walk<'_> {
    fn value(&mut self, value: &mut Spanned<DeValue<'_>>, schema: &Value, path: &str) {
        let shape = Shape::of(schema, self.root);
        match value.get_mut() {
            DeValue::Table(table) => {
                let mut unknown = Vec::new();
                for (key, value) in table.iter_mut() {
                    let name = key.get_ref().as_ref();
                    let path = join(path, name);
                    match shape.properties.get(name) {
                        Some(schema) => {
                            self.offsets.insert(path.clone(), key.span().start);
                            self.value(value, schema, &path);
                        }
                        None if shape.properties.is_empty() => {}
                        None => {
                            let known = shape.properties.keys().map(String::as_str);
                            let problem = format!("unknown key \"serve.{path}\"{}", suggestion(name, known));
                            self.problems.push(Problem { at: Some(key.span().start), problem });
                            unknown.push(name.to_owned());
                        }
                    }
                }
                for name in unknown {
                    table.remove(name.as_str());
                }
            }
            DeValue::Array(items) => {
                let Some(item_schema) = shape.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    let path = join(path, &index.to_string());
                    self.offsets.insert(path.clone(), item.span().start);
                    self.value(item, item_schema, &path);
                }
            }
            _ => {}
        }
    }
}

/// The keys and items that a schema permits.
#[derive(Default)]
struct Shape<'a> {
    properties: BTreeMap<String, &'a Value>,
    items: Option<&'a Value>,
}

impl<'a> Shape<'a> {
    fn of(schema: &'a Value, root: &'a Value) -> Self {
        let mut shape = Self::default();
        shape.add(schema, root);
        shape
    }

    /// Adds what a schema permits. Schemas of alternatives are combined; the types are checked when the value is read.
    fn add(&mut self, schema: &'a Value, root: &'a Value) {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            if let Some(schema) = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) {
                self.add(schema, root);
            }
            return;
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for part in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.add(part, root);
            }
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.properties.entry(name.clone()).or_insert(property);
        }
        self.items = self.items.or_else(|| schema.get("items"));
    }
}

/// Removes the innermost entry whose value contains an offset. Returns the offset of the entry.
fn remove(value: &mut Spanned<DeValue<'_>>, at: Offset) -> Option<Offset> {
    match value.get_mut() {
        DeValue::Table(table) => {
            // The span of a table is that of its header, so its entries may be outside.
            let mut found = None;
            for (key, value) in table.iter_mut() {
                if let Some(offset) = remove(value, at) {
                    return Some(offset);
                }
                if value.span().contains(&at) || key.span().contains(&at) {
                    found = Some((key.get_ref().as_ref().to_owned(), key.span().start));
                }
            }
            let (name, offset) = found?;
            table.remove(name.as_str());
            Some(offset)
        }
        DeValue::Array(items) => {
            if let Some(offset) = items.iter_mut().find_map(|item| remove(item, at)) {
                return Some(offset);
            }
            let offset = items.iter().find(|item| item.span().contains(&at))?.span().start;
            let mut kept = DeArray::new();
            items.iter().filter(|item| item.span().start != offset).for_each(|item| kept.push(item.clone()));
            *items = kept;
            Some(offset)
        }
        _ => None,
    }
}

/// Returns the key at an offset.
fn key_at(offsets: &Offsets, at: Offset) -> Option<&str> {
    offsets.iter().filter(|(_, offset)| **offset == at).map(|(key, _)| key.as_str()).max_by_key(|key| key.len())
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns the end of a message about an unknown name.
pub(super) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let rated = known.into_iter().map(|known| (strsim::jaro(name, known), known)).filter(|(rating, _)| *rating > 0.7);
    let nearest = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    nearest.map(|(_, known)| format!("; did you mean {known:?}?")).unwrap_or_default()
}
