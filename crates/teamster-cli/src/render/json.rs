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
            Event::Done(done) => write_document(&serde_json::to_string_pretty(&done.result)?, &mut to.out),
            _ => Ok(()),
        }
    }
}

/// Writes JSON text and a line end with one call, and flushes.
///
/// JSON requires escapes for control characters below U+0020 only. Terminals also interpret U+007F to U+009F, and many
/// readers split lines at U+0085, U+2028 and U+2029. All of these are escaped too, and so are characters that change the
/// direction of text. They occur only inside strings, so the meaning of the document does not change.
pub(crate) fn write_document(document: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::with_capacity(document.len() + 1);
    text.extend_from_slice(document.as_bytes());
    escape(&mut text, 0);
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

/// Appends a value as one line of JSON, with the escapes of [`write_document`].
pub(super) fn append_line(value: &impl Serialize, lines: &mut Vec<u8>) -> serde_json::Result<()> {
    let start = lines.len();
    serde_json::to_writer(&mut *lines, value)?;
    escape(lines, start);
    lines.push(b'\n');
    Ok(())
}

/// Escapes the characters in JSON text from `start` on. Most text has none, and is not copied.
fn escape(json: &mut Vec<u8>, start: usize) {
    // The first bytes of all characters that are escaped, in UTF-8.
    let may_be_escaped = |byte: &u8| matches!(byte, 0x7f | 0xc2 | 0xd8 | 0xe2);
    let Some(first) = json.get(start..).and_then(|text| text.iter().position(may_be_escaped)) else { return };
    let rest = json.split_off(start + first);
    json.reserve(rest.len());
    for character in String::from_utf8_lossy(&rest).chars() {
        if is_escaped(character) {
            let _ = write!(json, "\\u{:04x}", u32::from(character));
        } else {
            json.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

fn is_escaped(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}
