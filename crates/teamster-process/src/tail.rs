//! Keeps the last bytes of a stream, for error messages.

use std::{collections::VecDeque, fmt};

/// Keeps the last bytes that were pushed, and counts the rest.
pub struct Tail {
    kept: VecDeque<u8>,
    max_bytes: usize,
    total: u64,
    /// Whether the kept bytes start at the beginning of a line.
    at_line_start: bool,
}

impl Tail {
    /// Creates a tail of at most `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self { kept: VecDeque::new(), max_bytes, total: 0, at_line_start: true }
    }

    /// Adds bytes and drops the oldest ones beyond the limit.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let excess = (self.kept.len() + bytes.len()).saturating_sub(self.max_bytes);
        let from_kept = excess.min(self.kept.len());
        let (passed, bytes) = bytes.split_at(excess - from_kept);
        let last_dropped = passed.last().copied().or_else(|| self.kept.get(from_kept.wrapping_sub(1)).copied());
        if excess > 0 {
            self.at_line_start = last_dropped == Some(b'\n');
        }
        self.kept.drain(..from_kept);
        self.kept.extend(bytes);
    }

    /// Returns the kept bytes as text of at most `max_bytes`. If older bytes were dropped, it
    /// starts with a whole line, unless there is only one. Invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.kept.iter().copied().collect();
        let mut text = String::from_utf8_lossy(self.whole(&bytes)).into_owned();
        // A replacement character is longer than the byte it replaces.
        let excess = text.len().saturating_sub(self.max_bytes);
        text.drain(..text.ceil_char_boundary(excess));
        text
    }

    /// Returns the number of bytes that were pushed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of bytes that were dropped.
    pub fn dropped(&self) -> u64 {
        self.total - self.kept.len() as u64
    }

    fn whole<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        if self.at_line_start {
            return bytes;
        }
        let line = memchr::memchr(b'\n', bytes).and_then(|end| bytes.get(end + 1..));
        if let Some(lines) = line.filter(|lines| !lines.trim_ascii().is_empty()) {
            return lines;
        }
        // A character has at most three bytes after its first.
        let inside = bytes.iter().take(3).take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count();
        bytes.get(inside..).unwrap_or_default()
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("total", &self.total).field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tail(max_bytes: usize, pushed: &[&str]) -> Tail {
        let mut tail = Tail::new(max_bytes);
        for text in pushed {
            tail.push(text.as_bytes());
        }
        tail
    }

    #[test]
    fn a_short_stream_is_kept_whole() {
        let tail = tail(100, &["one\ntw", "o\n"]);
        assert_eq!((tail.text().as_str(), tail.total(), tail.dropped()), ("one\ntwo\n", 8, 0));
    }

    #[test]
    fn a_line_that_lost_its_head_is_left_out() {
        let tail = tail(10, &["first line\n", "second\n"]);
        assert_eq!((tail.text().as_str(), tail.dropped()), ("second\n", 8));
    }

    #[test]
    fn a_line_that_lost_nothing_is_kept_when_all_before_it_is_dropped() {
        assert_eq!(tail(7, &["first\n", "second\n"]).text(), "second\n");
        assert_eq!(tail(7, &["first\nsecond\n"]).text(), "second\n");
    }

    #[test]
    fn the_only_line_is_cut_between_characters() {
        assert_eq!(tail(5, &["ääääää"]).text(), "ää");
        assert_eq!(tail(6, &["x😀😀\n"]).text(), "😀\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut tail = Tail::new(100);
        tail.push(b"a\xffb");
        assert_eq!(tail.text(), "a\u{fffd}b");
    }

    #[test]
    fn the_text_has_no_more_bytes_than_the_bound_whatever_is_replaced() {
        let mut tail = Tail::new(100);
        for _ in 0..50 {
            tail.push(b"\xff\xff\xffend");
        }
        let text = tail.text();
        assert!(text.len() <= 100 && text.ends_with("\u{fffd}end"), "{text}");
    }

    proptest! {
        #[test]
        fn the_tail_is_the_end_of_the_stream_however_it_is_cut(
            pushed in prop::collection::vec(prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..20), 0..20),
            max_bytes in 0usize..40,
        ) {
            let mut tail = Tail::new(max_bytes);
            for bytes in &pushed {
                tail.push(bytes);
            }
            let stream = pushed.concat();
            let kept = &stream[stream.len().saturating_sub(max_bytes)..];
            prop_assert_eq!(tail.kept.iter().copied().collect::<Vec<_>>(), kept);
            prop_assert_eq!(tail.dropped(), (stream.len() - kept.len()) as u64);
            let cut = stream.len() - kept.len();
            prop_assert_eq!(tail.at_line_start, cut == 0 || stream[cut - 1] == b'\n');
        }
    }
}
