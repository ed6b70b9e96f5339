//! Times of writes in the texts of deltas.

use crate::usage::now_ns;

/// Returns the first text in a line of any of the forms, and of `--output ndjson`; `done` has none.
#[must_use]
pub fn text_of_line(line: &[u8]) -> Option<&str> {
    if line.starts_with(br#"{"type":"done""#) {
        return None;
    }
    let line = std::str::from_utf8(line).ok()?;
    let (_, text) = [r#""text":""#, r#""delta":""#].iter().find_map(|name| line.split_once(name))?;
    Some(text.split_once('"')?.0)
}

/// Returns the time that the first text of a line is.
#[must_use]
pub fn stamp_of_line(line: &[u8]) -> Option<u64> {
    stamp(text_of_line(line)?)
}

/// Returns the time that a text consists of.
#[must_use]
pub fn stamp(text: &str) -> Option<u64> {
    // Shorter numbers are no times of this clock.
    if text.len() < 10 { None } else { text.parse().ok() }
}

/// Returns the time since the write of a delta, if its text is a time.
#[must_use]
pub fn age_ns(text: &str) -> Option<u64> {
    stamp(text).map(|written| now_ns().saturating_sub(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_found_in_the_text_of_a_delta() {
        let line = br#"{"type":"stream_event","event":{"delta":{"type":"text_delta","text":"12345678901234"}}}"#;
        assert_eq!(stamp_of_line(line), Some(12_345_678_901_234));
        assert_eq!(stamp_of_line(br#"{"params":{"delta":"12345678901234"}}"#), Some(12_345_678_901_234));
        assert_eq!(stamp_of_line(br#"{"text":"some words "}"#), None);
    }
}
