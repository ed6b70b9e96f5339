//! Texts without the line breaks inside words, so that a text that was wrapped at a fixed width is in one piece.

use std::ops::Range;

/// A text without the line breaks that have no space beside them.
pub(super) struct Unwrapped {
    pub(super) text: String,
    /// The removed line breaks: their places in `text`, and the number of bytes removed up to there.
    breaks: Vec<(usize, usize)>,
}

impl Unwrapped {
    /// Returns `None` if there is no such line break.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut unwrapped = Self { text: String::new(), breaks: Vec::new() };
        let (mut done, mut removed) = (0, 0);
        for (end, _) in text.match_indices('\n') {
            let before = text.get(done..end).unwrap_or_default();
            let line = before.strip_suffix('\r').unwrap_or(before);
            let next = text.as_bytes().get(end + 1);
            if !line.ends_with(|last: char| last.is_ascii_graphic()) || !next.is_some_and(u8::is_ascii_graphic) {
                continue;
            }
            unwrapped.text.push_str(line);
            removed += before.len() - line.len() + 1;
            unwrapped.breaks.push((unwrapped.text.len(), removed));
            done = end + 1;
        }
        unwrapped.text.push_str(text.get(done..).unwrap_or_default());
        (removed > 0).then_some(unwrapped)
    }

    /// Returns the range of the original text from which a range of this text was made.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        // A range that starts just after a line break, or ends just before one, does not contain it.
        let removed =
            |breaks: usize| breaks.checked_sub(1).and_then(|at| self.breaks.get(at)).map_or(0, |found| found.1);
        let start = self.breaks.partition_point(|(at, _)| *at <= range.start);
        let end = self.breaks.partition_point(|(at, _)| *at < range.end);
        range.start + removed(start)..range.end + removed(end)
    }
}

/// Joins overlapping ranges, which are in order.
pub(super) fn merge(found: &mut Vec<(Range<usize>, &str)>) {
    found.dedup_by(|(next, _), (range, _)| {
        let overlaps = next.start < range.end;
        if overlaps {
            range.end = range.end.max(next.end);
        }
        overlaps
    });
}
