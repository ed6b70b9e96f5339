//! Texts without the line breaks within words: what was broken over lines of a fixed width is in one piece again.

use std::ops::Range;

/// A text without the line breaks that have no space beside them.
pub(super) struct Unwrapped {
    pub(super) text: String,
    /// Where line breaks were taken out, by places in `text`, and how many bytes were taken out up to there.
    breaks: Vec<(usize, usize)>,
}

impl Unwrapped {
    /// `None` if nothing is to be taken out.
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

    /// The range of the original text that a range of this one is made of.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        // What begins just after a line break does not hold it, nor does what ends just before one.
        let removed =
            |breaks: usize| breaks.checked_sub(1).and_then(|at| self.breaks.get(at)).map_or(0, |found| found.1);
        let start = self.breaks.partition_point(|(at, _)| *at <= range.start);
        let end = self.breaks.partition_point(|(at, _)| *at < range.end);
        range.start + removed(start)..range.end + removed(end)
    }
}

/// Joins ranges that overlap. They are in their order.
pub(super) fn merge(found: &mut Vec<(Range<usize>, &str)>) {
    found.dedup_by(|(next, _), (range, _)| {
        let overlaps = next.start < range.end;
        if overlaps {
            range.end = range.end.max(next.end);
        }
        overlaps
    });
}
