//! The input box of a chat, without input and output: keys change its state, and it returns actions and lines.
//!
//! - [`input_box`]: its state; [`keys`]: the meaning of each key; [`emacs`] and [`vi`]: the keys that edit the text.
//! - [`text`]: a text with a cursor; [`history`], [`completion`], [`waiting`]: what else the box holds.
//! - [`view`]: its lines on a terminal; [`columns`]: the width of text.
//!
//! Invariants: no typed or pasted text is lost: it is in the box, in an action, in the waiting prompts or in the history.
//! A paste never submits. Enter submits only if no text follows it at once: characters that arrive together are one
//! message, as after a paste into a terminal without bracketed paste.

mod columns;
mod completion;
mod emacs;
mod history;
mod input_box;
mod keys;
#[cfg(test)]
mod tests;
mod text;
mod vi;
mod view;
mod waiting;

pub(crate) use self::completion::{Candidate, CompletionRequest, Subject};
pub(crate) use self::history::History;
pub(crate) use self::input_box::{Action, Input, Keys};
pub(crate) use self::view::View;
