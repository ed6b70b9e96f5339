//! Helpers for the JSON that the dialects read and write.

use std::io::{self, Write as _};

use serde_json::Value;

/// Writes a JSON line.
pub(super) fn write(line: &Value) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Splits a text into the pieces that a model streams.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<_> = characters.chunks(8).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

/// Returns the last text that is not empty in a protocol's list of content blocks.
pub(super) fn text_of(blocks: &Value) -> String {
    let blocks = blocks.as_array().into_iter().flatten();
    let mut texts = blocks.filter_map(|block| block.get("text")?.as_str());
    texts.rfind(|text| !text.is_empty()).unwrap_or_default().to_owned()
}

/// Returns the value at this JSON pointer, or null.
pub(super) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Sets a member of an object.
pub(super) fn put(value: &mut Value, name: &str, new: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(name.to_owned(), new);
    }
}
