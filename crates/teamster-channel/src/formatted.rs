//! Markdown as a text with ranges, for services whose messages have formatting beside the text.
//!
//! Ranges need no escaping: no character of a text of an agent is markup. Mentions are neutralized, since some services find
//! them in plain texts. What cannot be shown, such as a table or HTML, is shown as it is written.

mod render;
mod types;
mod writer;

pub use self::types::{Entity, EntityKind, Formatted, is_shown, utf16_length};

/// Returns Markdown as a text with at most 100 ranges.
///
/// ```
/// use teamster_channel::{EntityKind, formatted};
///
/// let hello = formatted("Hello, **Ada**");
/// assert_eq!((hello.text.as_str(), &hello.entities[0].kind), ("Hello, Ada", &EntityKind::Bold));
/// ```
pub fn formatted(markdown: &str) -> Formatted {
    render::render(markdown)
}
