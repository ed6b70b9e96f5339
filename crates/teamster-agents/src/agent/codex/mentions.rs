//! Skills that a prompt mentions.

use std::collections::BTreeSet;

/// Returns the names that a text mentions as `$name`. Codex 0.169.0 adds the text of a mentioned skill to the conversation, also
/// for a mention within a word or in backticks.
pub(super) fn skills(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for after in text.split('$').skip(1) {
        let end = after.find(|c: char| !is_name(c)).unwrap_or(after.len());
        let run = after.get(..end).unwrap_or_default();
        // Punctuation after the name may be part of the sentence.
        let trimmed = run.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let plain = run.split(':').next().unwrap_or_default();
        names.extend([run, trimmed, plain].into_iter().filter(|name| !name.is_empty()));
    }
    names
}

/// Returns whether a text contains a link that loads a plugin or an app.
pub(super) fn links_an_extension(text: &str) -> bool {
    ["](plugin://", "](app://", "](skill://", "](mcp://"].iter().any(|link| text.contains(link))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-:".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_after_a_dollar_is_returned_once() {
        let found: Vec<_> = skills("use $foo, `$bar-baz` and x$foo: $100, $a:b $ $é").into_iter().collect();
        assert_eq!(found, ["100", "a", "a:b", "bar-baz", "foo", "foo:"]);
        assert!(skills("no mention").is_empty());
    }
}
