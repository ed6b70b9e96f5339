//! The format `json`, for programs: the result as one document, at the end.

use std::io::{self, Write};
use std::time::Instant;

use serde::Serialize;
use teamster::Event;

use super::renderer::{Renderer, Streams};

pub(super) struct Json;

impl Renderer for Json {
    fn event(&mut self, event: &Event, _now: Instant, to: &mut Streams) -> io::Result<()> {
        match event {
            Event::Done(done) => {
                let mut to = JsonWriter { text: &mut Vec::new(), out: &mut to.out };
                serde_json::to_writer_pretty(&mut to, &done.result)?;
                to.end_line()?;
                to.flush()
            }
            _ => Ok(()),
        }
    }
}

/// The number of bytes that are collected before they are written.
const WRITE_BYTES: usize = 64 * 1024;

/// Writes JSON text and a line end, and flushes. Text of less than 64 KiB is written with one call.
///
/// JSON requires escapes for control characters below U+0020 only. Terminals also interpret U+007F to U+009F, and many
/// readers split lines at U+0085, U+2028 and U+2029. All of these are escaped too, and so are characters that change the
/// direction of text. They occur only inside strings, so the meaning of the document does not change.
pub(crate) fn write_document(document: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::with_capacity(WRITE_BYTES.min(document.len() + 1));
    let mut to = JsonWriter { text: &mut text, out };
    to.write_all(document.as_bytes())?;
    to.end_line()?;
    to.flush()
}

/// Writes JSON with the escapes of [`write_document`], and collects it in pieces. The caller writes whole characters, as
/// `serde_json` does.
pub(crate) struct JsonWriter<'a> {
    /// Text that was not written yet.
    pub(crate) text: &'a mut Vec<u8>,
    pub(crate) out: &'a mut dyn Write,
}

impl JsonWriter<'_> {
    /// Appends a value as a line.
    pub(crate) fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *self, value)?;
        self.end_line()
    }

    /// Appends a short value as a line. This is faster than [`line`](Self::line), because the text is not checked part by part.
    pub(crate) fn short_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let start = self.text.len();
        serde_json::to_writer(&mut *self.text, value)?;
        if self.text.get(start..).is_some_and(needs_a_check) {
            let line = self.text.split_off(start);
            append(&line, self.text);
        }
        self.end_line()
    }

    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.text.push(b'\n');
        self.write_if_full()
    }

    fn write_if_full(&mut self) -> io::Result<()> {
        if self.text.len() >= WRITE_BYTES { self.write_text() } else { Ok(()) }
    }

    fn write_text(&mut self) -> io::Result<()> {
        self.out.write_all(self.text)?;
        self.text.clear();
        self.text.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }
}

impl Write for JsonWriter<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_length(rest));
            if needs_a_check(piece) {
                append(piece, self.text);
            } else {
                self.text.extend_from_slice(piece);
            }
            self.write_if_full()?;
            rest = after;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_text()?;
        self.out.flush()
    }
}

/// Returns the length of the next piece of at most [`WRITE_BYTES`]. It does not end within a character.
fn piece_length(text: &[u8]) -> usize {
    let is_start = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0b1100_0000 != 0b1000_0000);
    let most = WRITE_BYTES.min(text.len());
    (most.saturating_sub(3).max(1)..=most).rev().find(is_start).unwrap_or(most)
}

/// Whether text may contain a character to escape. The first two checks are fast, and enough for most text.
fn needs_a_check(text: &[u8]) -> bool {
    let has_delete = text.contains(&0x7f);
    // The first bytes of the other characters in UTF-8.
    has_delete || !text.is_ascii() && text.iter().any(|byte| matches!(byte, 0xc2 | 0xd8 | 0xe2))
}

/// Appends JSON text with the escapes.
fn append(json: &[u8], to: &mut Vec<u8>) {
    for character in String::from_utf8_lossy(json).chars() {
        if is_escaped(character) {
            to.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
        } else {
            to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

fn is_escaped(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut JsonWriter<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        let mut to = JsonWriter { text: &mut Vec::new(), out: &mut out };
        write(&mut to).unwrap();
        to.flush().unwrap();
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn any_text_is_written_the_same_whole_or_in_parts_and_read_back(text: String, repeats in 1..3000_usize) {
            let text = text.repeat(repeats);
            let (line, short) = (written(|to| to.line(&text)), written(|to| to.short_line(&text)));
            prop_assert_eq!(&line, &short);
            prop_assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
            prop_assert!(!line.trim_end_matches('\n').chars().any(|character| is_escaped(character) || character == '\n'));
        }
    }

    #[test]
    fn no_character_is_cut_between_two_writes() {
        let text = format!("{}{}", "a".repeat(WRITE_BYTES - 2), "\u{1f44b}".repeat(WRITE_BYTES));
        assert_eq!(written(|to| to.line(&text)), format!("\"{text}\"\n"));
    }
}
