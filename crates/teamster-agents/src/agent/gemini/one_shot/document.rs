//! The document of a batch run. It has many lines on standard output. If the run failed, it is on standard error, between other
//! lines.

use super::wire::Document;
use crate::agent::line;

/// The maximum bytes of a document.
const MAX_DOCUMENT: usize = 64 << 20;

/// The lines of an incomplete document.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
}

impl Lines {
    /// Adds a line. Returns the document when it is complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<Document> {
        if self.text.is_empty() && bytes != b"{" {
            return complete(bytes);
        }
        if self.text.len() + bytes.len() > MAX_DOCUMENT {
            self.text.clear();
            return None;
        }
        self.text.push_str(&String::from_utf8_lossy(bytes));
        self.text.push('\n');
        // Only the outermost brace is at the start of a line.
        (bytes == b"}").then(|| complete(std::mem::take(&mut self.text).as_bytes())).flatten()
    }
}

/// Reads a document. Other JSON on a line is not a document: some slash commands print JSON (`/memory show`).
fn complete(bytes: &[u8]) -> Option<Document> {
    let read = line::with_json(bytes, |text| serde_json::from_str::<Document>(text)).ok();
    read.filter(|document| document.response.is_some() || document.error.is_some())
}

/// Returns the last document in a text. The CLI prints it twice if the limit of turns was reached (`max_turns_json`).
pub(super) fn last_in(text: &str) -> Option<Document> {
    let mut found = None;
    let mut lines = Lines::default();
    for line in text.lines() {
        if line == "{" {
            lines = Lines::default();
        }
        found = lines.take(line.as_bytes()).or(found);
    }
    found
}
