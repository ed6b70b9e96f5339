//! Reads the lines of standard input on a separate thread.
//!
//! At most one line waits while the next one is read, so commands need the memory of two lines. The thread is never
//! joined: only the end of the process interrupts a blocked read.

use std::io::{self, BufRead, Read as _};

use tokio::sync::mpsc;

/// The longest line. The largest attachment (32 MiB) fits into it as base64.
pub(super) const MAX_LINE_BYTES: usize = 64 << 20;

/// A line of input, with its number from 1.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// The line was skipped because it was too long. The value is its length in bytes.
    TooLong(u64),
    /// The read failed; no line follows.
    Failed(io::Error),
}

/// Starts the reader thread. The channel closes at the end of input.
pub(super) fn start() -> io::Result<mpsc::Receiver<Line>> {
    let (sender, lines) = mpsc::channel(1);
    let read = move || read(io::stdin().lock(), MAX_LINE_BYTES, |line| sender.blocking_send(line).is_ok());
    std::thread::Builder::new().name("reader".to_owned()).spawn(read)?;
    Ok(lines)
}

/// Passes each line to `consume`, until the input ends or `consume` returns `false`.
fn read(mut input: impl BufRead, max_bytes: usize, mut consume: impl FnMut(Line) -> bool) {
    for number in 1.. {
        let content = match read_line(&mut input, max_bytes) {
            Ok(Some(content)) => content,
            Ok(None) => return,
            Err(error) => Content::Failed(error),
        };
        let last = matches!(content, Content::Failed(_));
        if !consume(Line { number, content }) || last {
            return;
        }
    }
}

/// Reads one line without its line end. Returns `None` at the end of input.
fn read_line(input: &mut impl BufRead, max_bytes: usize) -> io::Result<Option<Content>> {
    let mut bytes = Vec::new();
    let mut length = input.by_ref().take(max_bytes as u64 + 1).read_until(b'\n', &mut bytes)? as u64;
    if length == 0 {
        return Ok(None);
    }
    if bytes.pop_if(|byte| *byte == b'\n').is_some() || bytes.len() <= max_bytes {
        return Ok(Some(Content::Bytes(bytes)));
    }
    drop(bytes);
    loop {
        let waiting = match input.fill_buf() {
            Ok(waiting) => waiting,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = waiting.iter().position(|byte| *byte == b'\n');
        let is_complete = end.is_some() || waiting.is_empty();
        let skipped = end.map_or(waiting.len(), |end| end + 1);
        length += end.unwrap_or(skipped) as u64;
        input.consume(skipped);
        if is_complete {
            return Ok(Some(Content::TooLong(length)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn lines(text: &[u8], buffer: usize) -> Vec<String> {
        let mut lines = Vec::new();
        read(BufReader::with_capacity(buffer, text), 5, |line| {
            lines.push(match line.content {
                Content::Bytes(bytes) => format!("{} {}", line.number, String::from_utf8(bytes).unwrap()),
                other => format!("{} {other:?}", line.number),
            });
            true
        });
        lines
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_complete() {
        let text = b"12345\n123456\n\n1234567890\nab";
        for buffer in 1..12 {
            assert_eq!(lines(text, buffer), ["1 12345", "2 TooLong(6)", "3 ", "4 TooLong(10)", "5 ab"], "{buffer}");
        }
        assert_eq!(lines(b"1234567", 2), ["1 TooLong(7)"]);
        assert_eq!(lines(b"", 2), <[&str; 0]>::default());
    }

    #[test]
    fn reading_stops_when_the_consumer_is_gone() {
        let mut consumed = 0;
        read(&b"a\nb\n"[..], 5, |_| {
            consumed += 1;
            false
        });
        assert_eq!(consumed, 1);
    }

    proptest! {
        #[test]
        fn the_lines_do_not_depend_on_the_size_of_the_reads(text in "[ab\n]{0,40}", buffer in 1_usize..9) {
            let expected: Vec<String> = text.strip_suffix('\n').unwrap_or(&text).split('\n').zip(1..)
                .map(|(line, number)| match line.len() {
                    0..=5 => format!("{number} {line}"),
                    length => format!("{number} TooLong({length})"),
                })
                .collect();
            let expected = if text.is_empty() { Vec::new() } else { expected };
            prop_assert_eq!(lines(text.as_bytes(), buffer), expected);
        }
    }
}
