//! Escapes names for a service that formats Markdown itself.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::marks::{Marks, marks};

/// Returns Markdown in which the marks that are part of names have a backslash. Code and addresses are not changed.
///
/// ```
/// assert_eq!(teamster_markdown::escape_names("**Run** __init__.py"), r"**Run** \_\_init\_\_.py");
/// ```
pub fn escape_names(source: &str) -> Cow<'_, str> {
    let mut found = Vec::new();
    let mut is_code = false;
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES;
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Text(_) if !is_code => found.extend(underscores(source, range)),
            Event::Start(Tag::Emphasis) if marks(source, &range, 1) != Marks::Hidden => add(&mut found, &range, 1),
            Event::Start(Tag::Strong) if marks(source, &range, 2) != Marks::Hidden => add(&mut found, &range, 2),
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        return Cow::Borrowed(source);
    }
    let (mut escaped, mut from) = (String::with_capacity(source.len() + found.len()), 0);
    for at in found {
        escaped.push_str(source.get(from..at).unwrap_or_default());
        if !source.get(..at).unwrap_or_default().ends_with('\\') && !is_in_address(source, at) {
            escaped.push('\\');
        }
        from = at;
    }
    escaped.push_str(source.get(from..).unwrap_or_default());
    Cow::Owned(escaped)
}

fn underscores(source: &str, range: Range<usize>) -> impl Iterator<Item = usize> {
    let start = range.start;
    source.get(range).unwrap_or_default().match_indices('_').map(move |(at, _)| start + at)
}

/// Adds the positions of the marks at both ends of a range.
fn add(found: &mut Vec<usize>, range: &Range<usize>, length: usize) {
    found.extend(range.start..range.start + length);
    found.extend(range.end.saturating_sub(length)..range.end);
}

/// Whether the word at a position is an address.
fn is_in_address(source: &str, at: usize) -> bool {
    let before = source.get(..at).unwrap_or_default();
    before.rsplit(char::is_whitespace).next().is_some_and(|word| word.contains("://"))
}
