//! Describes errors in the syntax of a configuration file, with the lines that a person must change.

use std::ops::Range;

/// Returns what is wrong with the syntax, with the key or the text that causes it. `None` if it follows from an earlier problem.
pub(super) fn problem(text: &str, span: Range<usize>, message: &str) -> Option<String> {
    let message = message.split('\n').collect::<Vec<_>>().join("; ");
    let start = text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    if message == "duplicate key" {
        return duplicate(text, span, start, line);
    }
    let line = line.split('#').next().unwrap_or_default();
    Some(match line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
        // A text starts with a quote. Numbers and dates are cut off where they end to be one.
        Some((key, value)) if value.starts_with(|c: char| c.is_alphanumeric() || "/~.".contains(c)) => {
            format!("{message}; a text needs quotes: {key} = {value:?}")
        }
        _ => message,
    })
}

/// Describes a key or a table that is defined twice, with the line of the first one. `start` is the offset of the line.
fn duplicate(text: &str, span: Range<usize>, start: usize, line: &str) -> Option<String> {
    let before = text.get(..start).unwrap_or_default();
    if let Some(header) = header(line) {
        let first = numbered(before).find(|(_, line)| self::header(line) == Some(header));
        return Some(match first {
            Some((number, _)) => format!("[{header}] is already open in line {number}: move these lines there"),
            None => format!("the table [{header}] is defined twice: remove one of them"),
        });
    }
    let key = text.get(span).unwrap_or_default().trim();
    let section = numbered(before).filter(|(_, line)| header(line).is_some()).last();
    // The lines of a table that is open already: the first of them moves with its header.
    let is_second =
        |name: &str, number: usize| numbered(before).any(|(n, line)| n < number && header(line) == Some(name));
    if let Some((number, line)) = section
        && header(line).is_some_and(|name| is_second(name, number))
    {
        return None;
    }
    let first_line = section.map_or(0, |(number, _)| number);
    let is_key = |line: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
    Some(match numbered(before).find(|(number, line)| *number > first_line && is_key(line)) {
        Some((number, _)) => format!("the key {key:?} is set twice, first in line {number}: remove one of them"),
        None => format!("the key {key:?} is set twice: remove one of them"),
    })
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

/// Returns the name of the table that a line opens.
fn header(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('[')?;
    let (name, _) = rest.split_once(']')?;
    (!name.starts_with('[')).then(|| name.trim())
}
