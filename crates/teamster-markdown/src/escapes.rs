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
        '_' | '#' => is_in_path,
        '*' => is_in_path || (word.is_empty() || word.ends_with('/')) && matches!(next, Some('.' | '/')),
        '~' => is_in_path || next == Some('/'),
        '`' => false,
        '|' => !is_in_table,
        // The number of a list, or the mark of a block.
        '.' | ')' => line.is_empty() || !line.chars().all(|c| c.is_ascii_digit()),
        '-' | '+' | '=' => !line.is_empty() || next != Some(' '),
        '>' if line.is_empty() => next != Some(' '),
        '[' => !rest.split_once(']').is_some_and(|(_, after)| after.starts_with(['(', '[', ':'])),
        ']' => !rest.starts_with(['(', '[', ':']),
        '<' => !(word.ends_with(|c: char| c.is_ascii_alphanumeric()) && next.is_some_and(char::is_alphanumeric)),
        '>' => word.split_once("\\<").is_none_or(|(name, _)| name.is_empty()),
        '!' => next != Some('['),
        '&' => !after.contains(';'),
        _ => true,
    }
}

/// Returns a text in which every mark was escaped, without the backslashes that [`events`](crate::events) would show. A mark of
/// HTML keeps its backslash, and so does one that would make a link or a spoiler.
///
/// ```
/// let shown = teamster_markdown::without_shown_backslashes;
/// assert_eq!(shown(r"a\.txt \(\*not\*\) \[x\]"), r"a.txt (\*not\*) [x]");
/// assert_eq!(shown(r"\[x\]\(y\)"), r"\[x\](y)");
/// ```
pub fn without_shown_backslashes(escaped: &str) -> String {
    // Whether brackets are those of a link is decided when the parentheses after them have no backslash.
    let plain = without(escaped, |mark, is_repeated| match mark {
        '[' | ']' | '<' | '>' | '&' => false,
        '|' => !is_repeated,
        _ => true,
    });
    without(&plain, |mark, _| matches!(mark, '[' | ']'))
}

/// Removes the backslashes that would be shown before the selected marks. The second argument is whether the same mark follows
/// or precedes.
fn without(escaped: &str, is_selected: impl Fn(char, bool) -> bool) -> String {
    let mut text = String::with_capacity(escaped.len());
    let mut characters = escaped.char_indices();
    while let Some((at, character)) = characters.next() {
        let Some((_, mark)) = (if character == '\\' { characters.next() } else { None }) else {
            text.push(character);
            continue;
        };
        let is_repeated =
            text.ends_with(mark) || characters.as_str().strip_prefix('\\').is_some_and(|rest| rest.starts_with(mark));
        if !(is_selected(mark, is_repeated) && is_text(escaped, at, false)) {
            text.push(character);
        }
        text.push(mark);
    }
    text
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
