//! The width of text in the input box.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::printable::Printable;

/// How a tab is shown.
const TAB: &str = "    ";

/// Returns a grapheme as it is shown.
pub(super) fn shown(grapheme: &str) -> Printable {
    if grapheme == "\t" { TAB.into() } else { Printable::prose(grapheme) }
}

/// Returns the width of a line of text in the box.
pub(super) fn columns(line: &str) -> usize {
    line.graphemes(true).map(|grapheme| shown(grapheme).columns()).sum()
}

/// Returns the position in bytes of the character at this column of a line.
pub(super) fn byte_at_column(line: &str, column: usize) -> usize {
    let mut used = 0;
    for (at, grapheme) in line.grapheme_indices(true) {
        used += shown(grapheme).columns();
        if used > column {
            return at;
        }
    }
    line.len()
}
