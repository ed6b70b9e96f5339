//! Parses the Markdown of agents.
//!
//! Agents mix Markdown and plain text. By `CommonMark`, `__init__.py` is a bold word before `.py`, `*.rs,*.md` is partly
//! emphasized, and `\.` is a dot. People copy names, paths and commands from the screen, so they must be shown as they were
//! written. [`events`] returns the events of the parser, in which marks that are part of a name are text.
//!
//! - Underscores are always shown, since they are part of names. Around several words they also emphasize.
//! - Asterisks and tildes emphasize if white space or punctuation that ends a name is around them.
//! - A backslash is hidden only before a mark that it was meant to escape.
//! - `a[i](j)` is a call, not a link. Further lines of a paragraph keep their indentation.

mod escapes;
mod events;
mod marks;
mod names;
#[cfg(test)]
mod tests;

pub use self::escapes::without_shown_backslashes;
pub use self::events::{Events, events};
pub use self::names::escape_names;
