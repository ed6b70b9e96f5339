//! Decides whether a backslash is shown.

/// Returns whether the backslash at this position is part of a path, a pattern or a command. Otherwise it escapes the
/// character after it.
pub(crate) fn is_text(source: &str, at: usize, is_in_table: bool) -> bool {
    let (before, rest) = source.split_at_checked(at).unwrap_or((source, ""));
    let mut rest = rest.chars();
    let (_, Some(escaped)) = (rest.next(), rest.next()) else { return true };
    let (next, rest) = (rest.clone().next(), rest.as_str());
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    let word = line.rsplit(char::is_whitespace).next().unwrap_or_default();
    let after = rest.split(char::is_whitespace).next().unwrap_or_default();
    let is_in_path = has_backslash(word) || has_backslash(after) || is_drive(word);
    match escaped {
        '`' => false,
        '*' => is_in_path || matches!(next, Some('.' | '/')),
        '~' => is_in_path || next == Some('/'),
        '|' => is_in_path && !is_in_table,
        _ => is_in_path,
    }
}

/// Whether a word has a backslash that escapes nothing, as in `C:\new` or `\d`.
fn has_backslash(word: &str) -> bool {
    let followed = word.split('\\').skip(1);
    followed.into_iter().any(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// Whether a word is the drive of a path: `C:`.
fn is_drive(word: &str) -> bool {
    let word = word.trim_start_matches(['"', '\'', '(']);
    word.len() == 2 && word.ends_with(':') && word.starts_with(|c: char| c.is_ascii_alphabetic())
}
