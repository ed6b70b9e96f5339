//! Markdown as a text with entities, <https://core.telegram.org/bots/api#messageentity>.
//!
//! Entities need no escaping, and the length of the text is what the service counts. Mentions are neutralized: a text of an agent
//! notifies no person. What Telegram cannot show, such as a table or HTML, is shown as it is written.

#[cfg(test)]
mod tests;
mod wire;

use teamster_channel::{Formatted, formatted, is_shown, utf16_length};

pub(crate) use self::wire::WireEntity;

/// The longest text of a message, in UTF-16 units without markup.
pub(crate) const MAX_TEXT: usize = 4_096;

/// The longest caption of a file.
pub(crate) const MAX_CAPTION: usize = 1_024;

/// What a text without visible characters is shown as. The service refuses an empty one.
const EMPTY: &str = "…";

/// Returns Markdown as a text of at most `max` UTF-16 units. Markdown whose text is longer than its source, and does not fit, is
/// shown as it is written. Only a source that does not fit is cut.
pub(crate) fn format(markdown: &str, max: usize) -> Formatted {
    let rendered = formatted(markdown);
    if rendered.text.trim().is_empty() {
        return Formatted { text: EMPTY.to_owned(), entities: Vec::new() };
    }
    if utf16_length(&rendered.text) <= max {
        return rendered;
    }
    Formatted { text: plain(markdown, max), entities: Vec::new() }
}

/// Returns a text of the same length without mentions, whatever its entities are: the sign has its full width.
pub(crate) fn without_mentions(text: &str) -> String {
    text.replace('@', "＠")
}

/// Returns the source without mentions, of the same length or cut.
fn plain(markdown: &str, max: usize) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut length = 0;
    let is_whole = utf16_length(markdown) <= max;
    let limit = if is_whole { max } else { max.saturating_sub(1) };
    for character in markdown.trim().chars().filter(|character| is_shown(*character)) {
        length += character.len_utf16();
        if length > limit {
            break;
        }
        text.push(character);
    }
    if !is_whole {
        text.push('…');
    }
    without_mentions(&text)
}
