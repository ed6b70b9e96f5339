//! Text of any length in lines that fit, each after a mark of its own: no line of it can pass for one of ours.

use unicode_width::UnicodeWidthStr as _;

use super::Printable;
use super::escape::{Token, Tokens};

/// Stands before each line but the first.
pub(crate) const GUTTER: &str = "      │ ";
/// The narrowest lines.
const NARROWEST: usize = 24;

/// All of a text: a line of it ends where the text has a line end, which is shown as `⟦LF⟧`, or where the room ends. The
/// first line follows `head`.
pub(crate) fn folded(head: Printable, text: &str, width: usize) -> Vec<Printable> {
    let width = width.max(NARROWEST);
    let (mut lines, mut line) = (Vec::new(), head.0);
    let mut used = line.width();
    let mut begun = used < width;
    if !begun {
        lines.push(Printable(std::mem::replace(&mut line, GUTTER.to_owned())));
        used = GUTTER.width();
    }
    for token in Tokens::of(text) {
        let shown = token.to_string();
        let columns = shown.width();
        if used + columns > width && begun {
            // A space at the end of a line would not be seen.
            let kept = line.trim_end_matches(' ').len();
            let spaces = if kept > GUTTER.len() { line.split_off(kept) } else { String::new() };
            lines.push(Printable(std::mem::replace(&mut line, GUTTER.to_owned())));
            used = GUTTER.width() + spaces.len();
            line.push_str(&spaces);
        }
        line.push_str(&shown);
        (used, begun) = (used + columns, true);
        if token == Token::Code('\n') {
            lines.push(Printable(std::mem::replace(&mut line, GUTTER.to_owned())));
            (used, begun) = (GUTTER.width(), false);
        }
    }
    if line != GUTTER {
        lines.push(Printable(line));
    }
    lines
}
