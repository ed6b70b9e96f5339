//! The changes of a file, line by line.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use similar::{ChangeTag, TextDiff};

use crate::printable::{Printable, folded, printable};

pub(super) const ADDED: Style = AnsiColor::Green.on_default();
pub(super) const REMOVED: Style = AnsiColor::Red.on_default();
pub(super) const PLACE: Style = AnsiColor::Cyan.on_default();
const UNCHANGED: Style = Style::new();

/// Indentation up to this many columns is shown as it is.
const MAX_INDENT: usize = 40;

/// The time for finding the shortest difference. After it, a longer one is shown: the time for two long texts without a
/// common line is proportional to the square of their lengths.
const MAX_SEARCH: Duration = Duration::from_millis(200);

/// Formats the difference of two texts, with all unchanged lines.
pub(crate) fn of_texts(old: &str, new: &str, width: usize) -> Vec<Printable> {
    let diff = TextDiff::configure().timeout(MAX_SEARCH).diff_lines(old, new);
    // The texts of an edit are parts of a file, so a missing line end matters only if the other text has one.
    let ends_differ = old.ends_with('\n') != new.ends_with('\n') && !old.is_empty() && !new.is_empty();
    let mut lines = Vec::new();
    for change in diff.iter_all_changes() {
        let (sign, style) = match change.tag() {
            ChangeTag::Insert => ('+', ADDED),
            ChangeTag::Delete => ('-', REMOVED),
            ChangeTag::Equal => (' ', UNCHANGED),
        };
        lines.extend(line(sign, change.value(), style, width));
        if ends_differ && change.missing_newline() && change.tag() != ChangeTag::Equal {
            lines.push(Printable::from("      (no line end at the end)").styled(PLACE));
        }
    }
    lines
}

/// Formats a text that is written to a file.
pub(crate) fn of_new_text(text: &str, width: usize) -> Vec<Printable> {
    text.split_inclusive('\n').flat_map(|text| line('+', text, ADDED, width)).collect()
}

/// Formats a patch in the unified format.
pub(crate) fn of_patch(patch: &str, width: usize) -> Vec<Printable> {
    let each = |text: &str| {
        let (sign, style) = match text.chars().next() {
            Some('+') if !text.starts_with("+++") => ('+', ADDED),
            Some('-') if !text.starts_with("---") => ('-', REMOVED),
            Some('@') => return styled(folded("    ".into(), text.trim_end_matches('\n'), width), PLACE),
            Some(' ') => (' ', UNCHANGED),
            _ => return folded("    ".into(), text.trim_end_matches('\n'), width),
        };
        line(sign, text.get(1..).unwrap_or_default(), style, width)
    };
    patch.split_inclusive('\n').flat_map(each).collect()
}

/// Formats a line with its sign. Indentation is kept, since code is hard to read without it.
fn line(sign: char, text: &str, style: Style, width: usize) -> Vec<Printable> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let rest = text.trim_start_matches([' ', '\t']);
    let mut indent = Printable::default();
    let mut columns = 0;
    for character in text.chars().take(text.len() - rest.len()) {
        let (shown, width) = if character == '\t' { ("→   ", 4) } else { (" ", 1) };
        indent.push(&shown.into());
        columns += width;
    }
    if columns > MAX_INDENT || rest.is_empty() {
        return styled(folded(printable!("    {} ", sign), text, width), style);
    }
    styled(folded(printable!("    {} {}", sign, indent), rest, width), style)
}

fn styled(lines: Vec<Printable>, style: Style) -> Vec<Printable> {
    if style == UNCHANGED { lines } else { lines.iter().map(|line| line.styled(style)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(lines: &[Printable]) -> Vec<String> {
        lines.iter().map(|line| line.without_styles().as_str().to_owned()).collect()
    }

    #[test]
    fn a_difference_shows_the_changed_lines_and_the_others() {
        let shown = plain(&of_texts("one\ntwo\nthree\n", "one\n2\n\tmore\nthree\n", 80));
        assert_eq!(shown, ["      one", "    - two", "    + 2", "    + →   more", "      three"]);
        assert_eq!(plain(&of_texts("a", "b", 80)), ["    - a", "    + b"]);
        let shown = plain(&of_texts("a", "b\n", 80));
        assert_eq!(shown, ["    - a", "      (no line end at the end)", "    + b"]);
        assert_eq!(plain(&of_texts("a", "b", 80)), ["    - a", "    + b"]);
    }

    #[test]
    fn long_texts_without_a_common_line_are_compared_in_time() {
        let text = |name: &str| {
            (0..60_000).flat_map(|number| [name.to_owned(), number.to_string(), "\n".to_owned()]).collect::<String>()
        };
        let (old, new) = (text("a"), text("b"));
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(of_texts(&old, &new, 80).len()));
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(120_000));
    }

    #[test]
    fn control_characters_and_long_indentation_stay_visible() {
        let shown = plain(&of_new_text("\x1b[2J\n  x \n", 80));
        assert_eq!(shown, ["    + ⟦ESC⟧[2J", "    +   x⟦U+0020⟧"]);
        let shown = plain(&of_new_text(&format!("{}x", " ".repeat(90)), 80));
        assert_eq!(shown, ["    + ⟦90 spaces⟧x"]);
    }

    #[test]
    fn a_patch_keeps_each_of_its_lines() {
        let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+  new\n \n";
        let expected = ["    --- a/x", "    +++ b/x", "    @@ -1 +1 @@", "    - old", "    +   new"];
        assert_eq!(plain(&of_patch(patch, 80)).get(..5).unwrap(), expected);
    }
}
