//! Texts as Discord shows them. It shows Markdown itself; what it cannot show, such as a table, is shown as it is written.

use std::borrow::Cow;

use teamster_channel::{TextLimit, TextUnit};

/// The longest text of a message. Discord counts characters; units of UTF-16 are never fewer.
pub(crate) const LIMIT: TextLimit = TextLimit { max: 2_000, unit: TextUnit::Utf16 };

/// What a text without visible characters is shown as. The service refuses an empty one.
const EMPTY: &str = "…";

/// Returns a text that the service accepts. Mentions notify no person: each call of the API demands that.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_visible) {
        return Cow::Borrowed(EMPTY);
    }
    // The service would hide the underscores of `__init__.py`.
    let escaped = teamster_channel::escape_names(text);
    if LIMIT.unit.length(&escaped) <= LIMIT.max {
        return escaped;
    }
    if LIMIT.unit.length(text) <= LIMIT.max {
        return Cow::Borrowed(text);
    }
    let mut length = 1;
    let is_in = |character: &char| {
        length += character.len_utf16();
        length <= LIMIT.max
    };
    Cow::Owned(text.chars().take_while(is_in).chain(['…']).collect())
}

/// Returns a text of at most `max` characters, for names and labels.
pub(crate) fn label(text: &str, max: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= max {
        return text;
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

fn is_visible(character: char) -> bool {
    !character.is_whitespace()
        && !character.is_control()
        && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_is_not_changed_and_a_longer_one_is_cut() {
        assert_eq!(shown("**Hi** @everyone"), "**Hi** @everyone");
        assert_eq!(shown(&"x".repeat(2_000)), "x".repeat(2_000));
        assert_eq!(shown("run __init__.py"), "run \\_\\_init\\_\\_.py");
        let full = format!("{} a_b", "x".repeat(1_996));
        assert_eq!(shown(&full), full);
        for text in ["x".repeat(2_001), "😀".repeat(1_500)] {
            let cut = shown(&text);
            assert!(LIMIT.unit.length(&cut) <= LIMIT.max && cut.ends_with('…'), "{}", cut.len());
        }
    }

    #[test]
    fn a_text_without_visible_characters_is_shown() {
        for text in ["", " \n", "\u{200b}\u{2060}"] {
            assert_eq!(shown(text), "…");
        }
    }

    #[test]
    fn a_label_is_one_line_of_a_limited_length() {
        assert_eq!(label(" two\n lines ", 80), "two lines");
        assert_eq!(label(&"x".repeat(100), 80).chars().count(), 80);
    }
}
