//! Decides whether marks around a text are markup or part of a name.

use std::ops::Range;

use unicode_width::UnicodeWidthChar as _;

/// The characters of marks.
const MARKS: [char; 3] = ['*', '_', '~'];

/// How the marks around a text are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// The text is emphasized, and its marks are hidden.
    Hidden,
    /// The text is emphasized, and its marks are shown.
    Shown,
    /// The marks are text.
    Text,
}

/// Returns how the marks of an emphasized range are shown. `length` is the length of each mark in bytes.
pub(crate) fn marks(source: &str, range: &Range<usize>, length: usize) -> Marks {
    let inner = range.start + length..range.end.saturating_sub(length);
    let (Some(all), Some(inner)) = (source.get(range.clone()), source.get(inner)) else { return Marks::Text };
    let before = source.get(..range.start).unwrap_or_default().trim_end_matches(MARKS);
    let after = source.get(range.end..).unwrap_or_default().trim_start_matches(MARKS);
    if !(may_open_after(before) && may_close_before(after) && is_phrase(inner)) {
        return Marks::Text;
    }
    let is_one_word = !inner.contains(char::is_whitespace);
    match (all.chars().next(), length) {
        (Some('_'), _) if is_one_word => Marks::Text,
        (Some('_'), _) => Marks::Shown,
        (Some('*'), 1) if is_pattern(inner, is_one_word) => Marks::Text,
        // A pattern of paths.
        (Some('*'), _) if inner.starts_with('/') || inner.ends_with('/') => Marks::Text,
        // One tilde is a home directory, or a number that is not exact.
        (Some('~'), 1) => Marks::Text,
        _ => Marks::Hidden,
    }
}

/// Whether a character can be part of a name. Scripts without spaces between words have wide characters.
pub(crate) fn is_name(character: char) -> bool {
    (character.is_alphanumeric() || character == '_') && character.width() != Some(2)
}

/// Whether a mark after this text can start an emphasis.
fn may_open_after(before: &str) -> bool {
    let mut characters = before.chars().rev();
    let Some(last) = characters.next() else { return true };
    let other = characters.next();
    match last {
        _ if last.is_whitespace() => true,
        '(' | '[' | '"' | '\'' | '`' | '>' | '|' | ',' | ';' | '!' | '?' => true,
        ':' => other != Some(':'),
        '-' => other.is_none_or(|other| other.is_whitespace() || other == '-'),
        _ => !last.is_ascii() && !is_name(last),
    }
}

/// Whether a mark before this text can end an emphasis.
fn may_close_before(after: &str) -> bool {
    let Some(first) = after.chars().next() else { return true };
    let next = after.trim_start_matches(first).chars().next();
    match first {
        _ if first.is_whitespace() => true,
        ')' | ']' | '}' | '"' | '\'' | '`' | ',' | ';' | '!' | '?' | '<' | '>' | '|' => true,
        '.' => next.is_none_or(|next| !is_name(next) && !matches!(next, '/' | '\\' | '*' | '(' | '{')),
        ':' => !after.starts_with("::") && !matches!(next, Some('/' | '\\')),
        '-' => next.is_none_or(char::is_whitespace),
        _ => !first.is_ascii() && !is_name(first),
    }
}

/// Whether a text between two marks can be words, and not what is between two names.
fn is_phrase(inner: &str) -> bool {
    let core = inner.trim_matches(MARKS);
    let mut ends = core.chars().rev();
    let (first, last, before_last) = (core.chars().next(), ends.next(), ends.next());
    let starts_inside = matches!(first, Some(')' | ']' | '}' | ',' | ';' | ':' | '?' | '\\' | '|' | '='));
    let is_quote = matches!(last, Some('"' | '\'')) && before_last.is_some_and(char::is_whitespace);
    let ends_inside = is_quote || matches!(last, Some('(' | '[' | '{' | '\\'));
    !starts_inside && !ends_inside && core.chars().any(|c| c.is_alphanumeric() || !c.is_ascii())
}

/// Whether a text between two asterisks is a part of file name patterns, pointers or formulas.
fn is_pattern(inner: &str, is_one_word: bool) -> bool {
    let core = inner.trim_matches('*');
    let starts = core.starts_with(['.', '/', '-', '+', '&', '%', '=', '@']);
    let is_part = core.starts_with('_') != core.ends_with('_');
    if starts || is_part || core.ends_with(['/', '_', '&']) && !core.starts_with('_') {
        return true;
    }
    let word = core.trim_matches(['"', '\'', '`', '(', ')', '[', ']', '“', '”', '‘', '’']);
    let word = word.trim_end_matches(['!', '?', ':', ',']);
    let is_plain = |c: char| c.is_alphanumeric() || !c.is_ascii() || matches!(c, '-' | '\'' | '*' | '`');
    is_one_word && !(word.chars().all(is_plain) && word.contains(|c: char| c.is_alphabetic() || !c.is_ascii()))
}
