//! TOML.
//!
//! `toml_edit` changes line ends and some blanks (`[ a . b ]`). So it edits a text with plain line feeds, and its changes are
//! applied to the user's text.

use serde_json::Value as Json;
use toml_edit::{Array, Decor, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::data::Data;
use super::lines;
use super::types::{DocumentError, Entries, Format, Step, shown};

/// Returns the text with entries.
pub(super) fn insert(body: &str, at: &[String], entries: &Entries) -> Result<String, DocumentError> {
    edited(body, |document| {
        let parent = make(document.as_item_mut(), at)?;
        for (name, value) in entries {
            put(parent, name, value)?;
        }
        Ok(())
    })
}

/// Returns the text without entries.
pub(super) fn take_out(body: &str, base: &str, at: &[String], steps: &[Step]) -> Result<String, DocumentError> {
    let base = parse(&plain(base))?;
    edited(body, |document| {
        for step in steps {
            match step {
                Step::Remove(name) => {
                    if let Some(parent) = find_mut(document.as_item_mut(), at).and_then(Item::as_table_like_mut) {
                        parent.remove(name);
                    }
                }
                Step::Restore(name) => restore(document.as_item_mut(), base.as_item(), at, name),
                Step::Prune(depth) => {
                    if let Some((key, parents)) = at.get(..*depth).unwrap_or_default().split_last()
                        && let Some(parent) = find_mut(document.as_item_mut(), parents)
                        && let Some(parent) = parent.as_table_like_mut()
                    {
                        parent.remove(key);
                    }
                }
            }
        }
        Ok(())
    })
}

/// Parses the text.
pub(super) fn data(body: &str) -> Result<Data, DocumentError> {
    Ok(item_data(parse(&plain(body))?.as_item()))
}

fn edited(
    body: &str,
    edit: impl FnOnce(&mut DocumentMut) -> Result<(), DocumentError>,
) -> Result<String, DocumentError> {
    let plain = plain(body);
    let mut document = parse(&plain)?;
    let before = document.to_string();
    edit(&mut document)?;
    let mut after = document.to_string();
    if before != plain
        && let Some(merged) = lines::three_way(&before, &after, &plain)
        && data(&merged) == data(&after)
    {
        after = merged;
    }
    Ok(lines::with_ends_of(body, &plain, after))
}

fn plain(body: &str) -> String {
    body.replace("\r\n", "\n")
}

fn parse(text: &str) -> Result<DocumentMut, DocumentError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        // The parser's own message contains the line, which may contain a secret.
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        DocumentError::Syntax { format: Format::Toml.name(), line, problem: error.message().replace('\n', ", ") }
    })
}

/// Returns the table at these keys. Creates missing tables.
fn make<'a>(root: &'a mut Item, at: &[String]) -> Result<&'a mut Item, DocumentError> {
    let mut item = root;
    for (depth, key) in at.iter().enumerate() {
        let is_inline = item.is_inline_table();
        let table = table_of(item, at.get(..depth).unwrap_or_default())?;
        if table.get(key).is_none_or(Item::is_none) {
            let mut made = Table::new();
            made.set_implicit(true); // or a header of its own would stand above those of its entries
            table.insert(key, if is_inline { Item::Value(InlineTable::new().into()) } else { Item::Table(made) });
        }
        item = table.get_mut(key).ok_or(DocumentError::Unfaithful)?;
    }
    table_of(item, at)?;
    Ok(item)
}

fn table_of<'a>(item: &'a mut Item, at: &[String]) -> Result<&'a mut dyn TableLike, DocumentError> {
    let found = item.type_name();
    item.as_table_like_mut().ok_or_else(|| DocumentError::NotATable { at: shown(at), found: a(found) })
}

fn a(type_name: &'static str) -> &'static str {
    match type_name {
        "array of tables" => "an array of tables",
        "array" => "an array",
        "string" => "a string",
        "boolean" => "a boolean",
        _ => "a single value",
    }
}

fn put(parent: &mut Item, name: &str, value: &Json) -> Result<(), DocumentError> {
    // A table gets a header only if it contains tables with headers.
    let has_headers = parent.as_table().is_some_and(|table| !table.is_dotted());
    let table = parent.as_table_like_mut().ok_or(DocumentError::Unfaithful)?;
    let old = table.get_mut(name);
    let item = match (value, &old) {
        (Json::Object(fields), None | Some(Item::Table(_))) if has_headers => {
            let mut made = Table::new();
            for (key, value) in fields {
                made.insert(key, Item::Value(value_of(name, value)?));
            }
            if let Some(Item::Table(old)) = &old {
                made.set_position(old.position());
                *made.decor_mut() = old.decor().clone();
            }
            Item::Table(made)
        }
        _ => {
            let mut made = value_of(name, value)?;
            if let Some(Item::Value(old)) = &old {
                *made.decor_mut() = old.decor().clone();
            }
            Item::Value(made)
        }
    };
    match old {
        // The key stays as it is, with the comments above it.
        Some(old) if !old.is_none() => *old = item,
        _ => _ = table.insert(name, item),
    }
    Ok(())
}

fn value_of(entry: &str, value: &Json) -> Result<Value, DocumentError> {
    let cannot = |value| DocumentError::Unrepresentable { entry: entry.to_owned(), format: Format::Toml.name(), value };
    Ok(match value {
        Json::Null => return Err(cannot("null")),
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(float)) if number.is_f64() => float.into(),
            _ => return Err(cannot("a number of more than 63 bits")),
        },
        Json::String(text) => string(text),
        Json::Array(values) => values.iter().map(|value| value_of(entry, value)).collect::<Result<Array, _>>()?.into(),
        Json::Object(fields) => {
            let mut table = InlineTable::new();
            for (key, value) in fields {
                table.insert(key, value_of(entry, value)?);
            }
            table.into()
        }
    })
}

fn string(text: &str) -> Value {
    if text.contains(['\n', '\r']) {
        // A string over several lines would contain the line ends of the file. A JSON string is a TOML string too.
        let quoted = Json::from(text).to_string().replace('\u{7f}', "\\u007f");
        if let Ok(value) = quoted.parse() {
            return value;
        }
    }
    text.into()
}

fn restore(root: &mut Item, base: &Item, at: &[String], name: &str) {
    let own = find(base, at).and_then(|parent| match parent {
        Item::Table(table) => table.get_key_value(name),
        _ => parent.as_table_like().and_then(|table| table.get_key_value(name)),
    });
    let Some((key, item)) = own else { return };
    let (mut key, mut item) = (key.clone(), item.clone());
    match find_mut(root, at) {
        Some(Item::Table(table)) => {
            // The user may have written comments above the entries meanwhile.
            match (table.remove_entry(name), &mut item) {
                (Some((_, Item::Table(ours))), Item::Table(own)) => stand_below(own, ours.decor()),
                (Some((above, _)), Item::Table(own)) if own.is_dotted() => {
                    if let Some((mut first, _)) = own.iter_mut().next() {
                        join(above.leaf_decor(), first.leaf_decor_mut());
                    }
                }
                (Some((above, Item::Value(_))), Item::Value(_)) => {
                    join(above.leaf_decor(), key.leaf_decor_mut());
                }
                _ => {}
            }
            table.insert_formatted(&key, item);
        }
        Some(Item::Value(Value::InlineTable(table))) => {
            table.remove(name);
            if let Ok(value) = item.into_value() {
                table.insert_formatted(&key, value);
            }
        }
        _ => {}
    }
}

/// Moves the user's text above the entries to above the previous text, unless it is contained in it.
fn join(above: &Decor, own: &mut Decor) {
    let text = |decor: &Decor| decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default().to_owned();
    let (above, before) = (text(above), text(own));
    own.set_prefix(if above.contains(before.trim()) { above } else { above + &before });
}

/// Moves the text above a header to above the header of this table, or of the first table below it if it has none.
fn stand_below(table: &mut Table, above: &Decor) {
    if !table.is_implicit() {
        return join(above, table.decor_mut());
    }
    if let Some(below) = table.iter_mut().find_map(|(_, item)| item.as_table_mut()) {
        stand_below(below, above);
    }
}

fn find<'a>(root: &'a Item, at: &[String]) -> Option<&'a Item> {
    at.iter().try_fold(root, |item, key| item.as_table_like()?.get(key))
}

fn find_mut<'a>(root: &'a mut Item, at: &[String]) -> Option<&'a mut Item> {
    at.iter().try_fold(root, |item, key| item.as_table_like_mut()?.get_mut(key))
}

fn item_data(item: &Item) -> Data {
    match item {
        Item::None => Data::Null,
        Item::Value(value) => value_data(value),
        Item::Table(table) => table_data(table),
        Item::ArrayOfTables(tables) => Data::Array(tables.iter().map(|table| table_data(table)).collect()),
    }
}

fn table_data(table: &dyn TableLike) -> Data {
    Data::Object(table.iter().map(|(key, item)| (key.to_owned(), item_data(item))).collect())
}

fn value_data(value: &Value) -> Data {
    match value {
        Value::String(text) => Data::Text(text.value().clone()),
        Value::Integer(integer) => Data::Number(integer.value().to_string()),
        Value::Float(float) => Data::Number(number(*float.value())),
        Value::Boolean(value) => Data::Bool(*value.value()),
        Value::Datetime(date) => Data::Date(date.value().to_string()),
        Value::Array(values) => Data::Array(values.iter().map(value_data).collect()),
        Value::InlineTable(table) => table_data(table),
    }
}

/// Returns the name of the kind of value, as in JSON if JSON has it.
fn number(float: f64) -> String {
    serde_json::Number::from_f64(float).map_or_else(|| float.to_string(), |number| number.to_string())
}
