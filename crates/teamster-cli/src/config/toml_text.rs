//! Changes one value in the text of a TOML file. All other bytes stay: comments, spaces and the order of the keys.

use std::ops::Range;

use toml_edit::{Document, Item, Key, TableLike};

/// Why a value cannot be changed in a text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TextError {
    /// The text is no TOML.
    #[error("the file is no valid TOML")]
    Syntax,
    /// The key is a table or a list of tables.
    #[error("{0} is a table: name one of its keys")]
    Table(String),
    /// A part of the key is a value or a list of tables.
    #[error("{0} is not a table")]
    NotATable(String),
    /// The key is inside of braces or behind a dot, where only a person knows how it should look.
    #[error("{0} is written in one line with others: change it with teamster config edit")]
    Inline(String),
}

/// Parses a key with dots, such as `profiles.review.model`.
pub(super) fn parse_key(text: &str) -> Option<Vec<String>> {
    let keys = Key::parse(text).ok()?;
    Some(keys.iter().map(|key| key.get().to_owned()).collect())
}

/// Formats a key with dots, with quotes where TOML needs them.
pub(super) fn format_key(path: &[String]) -> String {
    let keys: Vec<String> = path.iter().map(|part| Key::new(part.as_str()).display_repr().into_owned()).collect();
    keys.join(".")
}

/// Returns the text with this value of a key, and the offset of the key in it.
///
/// A new key follows the last key of its table, or its example in a comment (`# model = ...`). A new table is at the end.
///
/// # Errors
/// The value cannot be set.
pub(super) fn with_value(text: &str, path: &[String], value: &str) -> Result<(String, usize), TextError> {
    let document = Document::parse(text).map_err(|_| TextError::Syntax)?;
    let Some((name, parents)) = path.split_last() else { return Err(TextError::Syntax) };
    let root: &dyn TableLike = document.as_table();
    let line = format!("{} = {value}", format_key(std::slice::from_ref(name)));
    let Some(table) = table_at(root, parents)? else {
        return Ok(with_table(text, parents, &line));
    };
    if let Some((key, item)) = table.get_key_value(name) {
        if item.is_table_like() && !item.is_inline_table() || item.is_array_of_tables() {
            return Err(TextError::Table(format_key(path)));
        }
        let (Some(at), Some(span)) = (key.span(), item.span()) else { return Err(TextError::Inline(format_key(path))) };
        return Ok((replaced(text, span, value), at.start));
    }
    let Some(header) = header_of(text, root, parents) else {
        // A header that only contains the tables below it, or no header: `[a.b]` and `a.b.c = 1`.
        let is_header_free = has_own_values(table);
        if is_header_free || parents.is_empty() {
            return Err(TextError::Inline(format_key(path)));
        }
        return Ok(with_table(text, parents, &line));
    };
    let end = section_end(text, root, header.end);
    let place = example(text, header.end..end, name).unwrap_or_else(|| last_value(table).unwrap_or(header.end));
    let at = line_end(text, place);
    Ok(inserted(text, at, &line))
}

/// Returns the text without a key; `None` if it is not there.
///
/// # Errors
/// The key cannot be removed.
pub(super) fn without(text: &str, path: &[String]) -> Result<Option<String>, TextError> {
    let document = Document::parse(text).map_err(|_| TextError::Syntax)?;
    let Some((name, parents)) = path.split_last() else { return Err(TextError::Syntax) };
    let Some(table) = table_at(document.as_table(), parents)? else { return Ok(None) };
    let Some((key, item)) = table.get_key_value(name) else { return Ok(None) };
    if item.is_table_like() && !item.is_inline_table() || item.is_array_of_tables() {
        return Err(TextError::Table(format_key(path)));
    }
    let inline = || TextError::Inline(format_key(path));
    let (key, item) = (key.span().ok_or_else(inline)?, item.span().ok_or_else(inline)?);
    let start = text.get(..key.start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let is_alone = text.get(start..key.start).is_some_and(|before| before.trim().is_empty());
    let end = line_end(text, item.end);
    let rest = text.get(item.end..end).unwrap_or_default().trim_start();
    if !is_alone || !(rest.is_empty() || rest.starts_with('#')) {
        return Err(inline());
    }
    let next = if text.get(end..).is_some_and(|rest| rest.starts_with('\n')) { end + 1 } else { end };
    Ok(Some(replaced(text, start..next, "")))
}

/// Returns the texts of a list; a text alone is a list of one. `None` if the key is not there.
pub(super) fn list_at(text: &str, path: &[String]) -> Option<Vec<String>> {
    let document = Document::parse(text).ok()?;
    let (name, parents) = path.split_last()?;
    let item = table_at(document.as_table(), parents).ok()??.get(name)?;
    match item.as_array() {
        Some(items) => Some(items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()),
        None => item.as_str().map(|text| vec![text.to_owned()]),
    }
}

/// Formats a list of texts, one in each line if there are several.
pub(super) fn format_list(items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format_text(item)).collect();
    match quoted.as_slice() {
        [] | [_] => format!("[{}]", quoted.join("")),
        _ => format!("[\n  {},\n]", quoted.join(",\n  ")),
    }
}

/// Formats a text as a value.
pub(super) fn format_text(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

fn table_at<'t>(root: &'t dyn TableLike, path: &[String]) -> Result<Option<&'t dyn TableLike>, TextError> {
    let mut table = root;
    for (depth, part) in path.iter().enumerate() {
        let Some(item) = table.get(part) else { return Ok(None) };
        let found = item.as_table_like();
        table = found.ok_or_else(|| TextError::NotATable(format_key(path.get(..=depth).unwrap_or_default())))?;
    }
    Ok(Some(table))
}

/// Returns the place of the header of a table. The root has its place before the first byte.
fn header_of(text: &str, root: &dyn TableLike, path: &[String]) -> Option<Range<usize>> {
    let (name, parents) = path.split_last()?;
    let table = table_at(root, parents).ok()??.get(name)?.as_table()?;
    let span = table.span().filter(|span| !span.is_empty())?;
    text.get(span.clone()).is_some_and(|header| header.starts_with('[')).then_some(span)
}

/// Whether a table has keys of its own, which stand before a dot or in braces.
fn has_own_values(table: &dyn TableLike) -> bool {
    table.iter().any(|(_, item)| item.is_value())
}

/// Returns the offset of the next header after this one, or of the end.
fn section_end(text: &str, root: &dyn TableLike, header: usize) -> usize {
    let mut headers = Vec::new();
    collect_headers(root, &mut headers);
    headers.into_iter().filter(|start| *start > header).min().unwrap_or(text.len())
}

fn collect_headers(table: &dyn TableLike, found: &mut Vec<usize>) {
    for (_, item) in table.iter() {
        match item {
            Item::Table(table) => {
                found.extend(table.span().filter(|span| !span.is_empty()).map(|span| span.start));
                collect_headers(table, found);
            }
            Item::ArrayOfTables(tables) => {
                for table in tables {
                    found.extend(table.span().filter(|span| !span.is_empty()).map(|span| span.start));
                    collect_headers(table, found);
                }
            }
            _ => {}
        }
    }
}

/// Returns the offset of the comment that shows an example of this key.
fn example(text: &str, section: Range<usize>, name: &str) -> Option<usize> {
    let mut offset = section.start;
    for line in text.get(section)?.split_inclusive('\n') {
        let comment = line.trim_start().strip_prefix('#').map(str::trim_start);
        // A header in a comment starts the examples of another table.
        if comment.is_some_and(|comment| comment.starts_with('[')) {
            return None;
        }
        let rest = comment.and_then(|comment| comment.strip_prefix(name));
        if rest.is_some_and(|rest| rest.trim_start().starts_with('=')) {
            return Some(offset);
        }
        offset += line.len();
    }
    None
}

/// Returns the end of the last value of a table that has a line of its own.
fn last_value(table: &dyn TableLike) -> Option<usize> {
    let values = table.get_values();
    values.iter().filter_map(|(_, value)| value.span()).map(|span| span.end).max()
}

fn line_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |end| at + end)
}

/// Inserts a line after the line that ends here.
fn inserted(text: &str, at: usize, line: &str) -> (String, usize) {
    let line_break = if text.get(..at).is_some_and(|before| before.ends_with('\r')) { "\r\n" } else { "\n" };
    let at = if line_break == "\r\n" { at - 1 } else { at };
    (replaced(text, at..at, &format!("{line_break}{line}")), at + line_break.len())
}

/// Appends a table with one line.
fn with_table(text: &str, path: &[String], line: &str) -> (String, usize) {
    let separator = match text {
        "" => "",
        _ if text.ends_with("\n\n") => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let start = format!("{text}{separator}[{}]\n", format_key(path));
    let at = start.len();
    (format!("{start}{line}\n"), at)
}

fn replaced(text: &str, range: Range<usize>, new: &str) -> String {
    let (before, after) = (text.get(..range.start).unwrap_or_default(), text.get(range.end..).unwrap_or_default());
    [before, new, after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, key: &str, value: &str) -> Result<String, TextError> {
        with_value(text, &parse_key(key).unwrap(), value).map(|(text, at)| {
            let name = parse_key(key).unwrap().pop().unwrap();
            assert!(text.get(at..).unwrap().trim_start_matches('"').starts_with(&name), "{key}: {text:?} {at}");
            text
        })
    }

    #[test]
    fn a_value_is_written_in_its_table_and_nothing_else_changes() {
        for (text, key, value, expected) in [
            ("", "defaults.model", "'m'", "[defaults]\nmodel = 'm'\n"),
            ("# c", "defaults.model", "'m'", "# c\n\n[defaults]\nmodel = 'm'\n"),
            ("[defaults]", "defaults.model", "'m'", "[defaults]\nmodel = 'm'"),
            ("[defaults] # c\n# x\n", "defaults.model", "'m'", "[defaults] # c\nmodel = 'm'\n# x\n"),
            ("[defaults]\r\na = 1\r\n", "defaults.model", "'m'", "[defaults]\r\na = 1\r\nmodel = 'm'\r\n"),
            (
                "[defaults]\n\n# The model\n# model = 'x'\n\n# [profiles.a]\n# effort = 1\n",
                "defaults.model",
                "'m'",
                "[defaults]\n\n# The model\n# model = 'x'\nmodel = 'm'\n\n# [profiles.a]\n# effort = 1\n",
            ),
            // The example belongs to another table.
            (
                "[defaults]\n# [profiles.a]\n# effort = 1\n",
                "defaults.effort",
                "2",
                "[defaults]\neffort = 2\n# [profiles.a]\n# effort = 1\n",
            ),
            ("[a]\nx = 1 # c\n\n[b]\nx = 2\n", "a.x", "7", "[a]\nx = 7 # c\n\n[b]\nx = 2\n"),
            ("[a]\nx = [\n 1, # one\n]\n[b]\n", "a.y", "7", "[a]\nx = [\n 1, # one\n]\ny = 7\n[b]\n"),
            ("[a.b]\nx = 1\n", "a.y", "7", "[a.b]\nx = 1\n\n[a]\ny = 7\n"),
            ("[a.b]\nx = 1\n[a]\n", "a.y", "7", "[a.b]\nx = 1\n[a]\ny = 7\n"),
            ("a = { x = 1 }\n", "a.x", "7", "a = { x = 7 }\n"),
            ("a.x = 1\n", "a.x", "7", "a.x = 7\n"),
            ("[p]\n", "p.\"/a b\".x", "7", "[p]\n\n[p.\"/a b\"]\nx = 7\n"),
            ("[[r]]\nx = 1\n[a]\n", "a.y", "7", "[[r]]\nx = 1\n[a]\ny = 7\n"),
        ] {
            let changed = set(text, key, value).unwrap();
            assert_eq!(changed, expected, "{key} in {text:?}");
            Document::parse(changed).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_written_safely_is_an_error() {
        for (text, key, expected) in [
            ("[a]\nb = {", "a.b", "the file is no valid TOML"),
            ("[a.b]\n", "a.b", "a.b is a table: name one of its keys"),
            ("[[a.b]]\n", "a.b.c", "a.b is not a table"),
            ("a = 1\n", "a.b", "a is not a table"),
            ("a = { x = 1 }\n", "a.y", "a.y is written in one line with others: change it with teamster config edit"),
            ("a.x = 1\n", "a.y", "a.y is written in one line with others: change it with teamster config edit"),
        ] {
            assert_eq!(set(text, key, "1").unwrap_err().to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_key_is_removed_with_its_line_and_without_the_comments_around_it() {
        let removed = |text: &str, key: &str| without(text, &parse_key(key).unwrap());
        assert_eq!(removed("[a]\n# c\nx = 1 # d\ny = 2\n", "a.x"), Ok(Some("[a]\n# c\ny = 2\n".to_owned())));
        assert_eq!(removed("[a]\nx = [\n 1,\n]", "a.x"), Ok(Some("[a]\n".to_owned())));
        assert_eq!(removed("[a]\n", "a.x"), Ok(None));
        assert_eq!(removed("[a]\n", "b.x"), Ok(None));
        assert!(matches!(removed("a = { x = 1 }\n", "a.x"), Err(TextError::Inline(_))));
        assert!(matches!(removed("[a.x]\n", "a.x"), Err(TextError::Table(_))));
    }

    #[test]
    fn lists_are_read_and_formatted() {
        let path = parse_key("a.x").unwrap();
        assert_eq!(list_at("[a]\nx = ['1', \"2\"]", &path), Some(vec!["1".to_owned(), "2".to_owned()]));
        assert_eq!(list_at("[a]\nx = '1'", &path), Some(vec!["1".to_owned()]));
        assert_eq!(list_at("[a]\n", &path), None);
        assert_eq!(format_list(&["a\"b".to_owned()]), "['a\"b']");
        assert_eq!(format_list(&["a".to_owned(), "b".to_owned()]), "[\n  \"a\",\n  \"b\",\n]");
    }
}
