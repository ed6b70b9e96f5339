//! Wraps text of any length. Each line after the first starts with a prefix, so that no line can imitate the command's
//! own output.

use unicode_width::UnicodeWidthStr as _;

use super::Printable;
use super::escape::{Token, Tokens};

/// The prefix of each line except the first.
pub(crate) const GUTTER: &str = "      │ ";
/// The minimum width of a line.
const NARROWEST: usize = 24;

/// Wraps a text at `width` columns, and after each line end, which is shown as `⟦LF⟧`. The first line starts with `head`.
pub(crate) fn folded(head: Printable, text: &str, width: usize) -> Vec<Printable> {
    let width = width.max(NARROWEST);
    let (mut lines, mut line) = (Vec::new(), head.0);
    let mut used = line.width();
    let mut has_content = used < width;
    if !has_content {
        lines.push(Printable(std::mem::replace(&mut line, GUTTER.to_owned())));
        used = GUTTER.width();
    }
    for token in Tokens::of(text) {
        let shown = token.to_string();
        let columns = shown.width();
        if used + columns > width && has_content {
            // A space at the end of a line would be invisible.
            let kept = line.trim_end_matches(' ').len();
            let spaces = if kept > GUTTER.len() { line.split_off(kept) } else { String::new() };
            lines.push(Printable(std::mem::replace(&mut line, GUTTER.to_owned())));
            used = GUTTER.width() + spaces.len();
            line.push_str(&spaces);
        }
        line.push_str(&shown);
        (used, has_content) = (used + columns, true);
        if token == Token::Code('\n') {
            lines.push(Printable(std::mem::replace(&mut line, GUTTER.to_owned())));
            (used, has_content) = (GUTTER.width(), false);
        }
    }
    if line != GUTTER {
        lines.push(Printable(line));
    }
    lines
}
