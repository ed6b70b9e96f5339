//! Parses server-sent events (the HTML standard's `text/event-stream`), with a limit on their size. Names and ids of events,
//! and comments, are ignored.

use bytes::{BufMut as _, Bytes};
use teamster_process::{Frame, LineFramer};

use super::ServerEvent;

/// The maximum number of bytes that one call takes.
const MAX_TAKEN: usize = 16 * 1024;

/// A parser of server-sent events.
pub(super) struct Events {
    lines: LineFramer,
    data: Vec<u8>,
    /// Whether the event has data, which can be an empty line.
    has_data: bool,
    /// The head of an event that is too long, and its length so far.
    too_long: Option<(Bytes, u64)>,
    max_bytes: usize,
}

impl Events {
    pub(super) fn new(max_bytes: usize) -> Self {
        // A line is `data: ` and the data.
        let lines = LineFramer::new(max_bytes.saturating_add("data: ".len()));
        Self { lines, data: Vec::new(), has_data: false, too_long: None, max_bytes }
    }

    /// Takes bytes, and returns their number. Call [`next`](Self::next) until it returns `None` before the next call.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let part = bytes.get(..MAX_TAKEN).unwrap_or(bytes);
        self.lines.space().put_slice(part);
        part.len()
    }

    /// Returns the next complete event. `None` if more bytes are needed.
    pub(super) fn next(&mut self) -> Option<ServerEvent> {
        loop {
            match self.lines.next()? {
                Frame::Line([]) => {
                    let data = std::mem::take(&mut self.data);
                    let has_data = std::mem::take(&mut self.has_data);
                    if let Some((head, length)) = self.too_long.take() {
                        return Some(ServerEvent::TooLong { head, length });
                    }
                    if has_data {
                        return Some(ServerEvent::Event(data.into()));
                    }
                }
                Frame::Line(line) | Frame::Unterminated(line) => {
                    let Some(value) = value(line) else { continue };
                    let length = self.data.len() + usize::from(self.has_data) + value.len();
                    if let Some((_, total)) = &mut self.too_long {
                        *total += value.len() as u64;
                    } else if length > self.max_bytes {
                        let head = self.data.iter().chain(value).take(1024).copied().collect();
                        self.too_long = Some((head, length as u64));
                        self.data = Vec::new();
                    } else {
                        if self.has_data {
                            self.data.push(b'\n');
                        }
                        self.data.extend_from_slice(value);
                    }
                    self.has_data = true;
                }
                Frame::TooLong { head, length } => {
                    let head = Bytes::copy_from_slice(head);
                    let (_, total) = self.too_long.get_or_insert((head, 0));
                    *total += length;
                    self.data = Vec::new();
                }
            }
        }
    }
}

/// Returns the value of a `data` line. `None` for any other line.
fn value(line: &[u8]) -> Option<&[u8]> {
    if line == b"data" {
        return Some(&[]);
    }
    let value = line.strip_prefix(b"data:")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(max_bytes: usize, stream: &[u8], cut: usize) -> Vec<String> {
        let (mut events, mut texts) = (Events::new(max_bytes), Vec::new());
        for mut chunk in stream.chunks(cut) {
            while !chunk.is_empty() {
                let taken = events.take(chunk);
                chunk = &chunk[taken..];
                while let Some(event) = events.next() {
                    texts.push(match event {
                        ServerEvent::Event(data) => String::from_utf8(data.to_vec()).unwrap(),
                        ServerEvent::TooLong { length, .. } => format!("too long: {length}"),
                        other => panic!("{other:?}"),
                    });
                }
            }
        }
        texts
    }

    #[test]
    fn an_event_consists_of_its_data_lines_and_ends_with_an_empty_line() {
        let stream = b": hello\nevent: x\nid: 7\ndata: {\"a\":1}\n\ndata:b\r\ndata: c\r\n\r\n\n\ndata\n\ndata: open";
        assert_eq!(parsed(100, stream, 1000), ["{\"a\":1}", "b\nc", ""]);
    }

    #[test]
    fn an_event_that_is_too_long_does_not_damage_the_next_one() {
        let one = [b"data: ".to_vec(), b"x".repeat(50), b"\n\ndata: next\n\n".to_vec()].concat();
        assert_eq!(parsed(10, &one, 7), ["too long: 56", "next"]);
        assert_eq!(parsed(10, b"data: 123456\ndata: 7890\ndata: 12\n\ndata: next\n\n", 3), ["too long: 13", "next"]);
        assert_eq!(parsed(10, b"data: 1234567890\n\n", 5), ["1234567890"]);
    }

    proptest! {
        #[test]
        fn events_are_the_same_wherever_the_stream_is_cut(
            texts in proptest::collection::vec("[a-z:\" ]{0,20}(\n[a-z ]{0,5})?", 0..10),
            cut in 1usize..40,
        ) {
            let mut stream = String::new();
            for text in &texts {
                for line in text.split('\n') {
                    stream.push_str("data: ");
                    stream.push_str(line);
                    stream.push('\n');
                }
                stream.push('\n');
            }
            prop_assert_eq!(parsed(1000, stream.as_bytes(), cut), texts);
        }

        #[test]
        fn any_bytes_are_parsed_in_bounded_memory(stream: Vec<u8>, cut in 1usize..40) {
            let mut events = Events::new(8);
            for chunk in stream.chunks(cut) {
                events.take(chunk);
                while let Some(event) = events.next() {
                    if let ServerEvent::Event(data) = event {
                        prop_assert!(data.len() <= 8);
                    }
                }
                prop_assert!(events.data.len() <= 8);
            }
        }
    }
}
