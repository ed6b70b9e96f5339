//! The format `json`, for programs: the result as one document, at the end.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Instant;

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
    let mut text = String::with_capacity(document.len() + 1);
    for character in document.chars() {
        let is_escaped = matches!(
            character,
            '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        );
        if is_escaped {
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()
}
