//! The document of a batch run: pretty-printed over many lines of standard output, or, when the run failed, amid other
//! things on standard error.

use super::wire::Document;
use crate::agent::line;

/// A longer document is none.
const MAX_DOCUMENT: usize = 64 << 20;

/// Lines of a document that is not complete yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
}

impl Lines {
    /// Takes a line; gives the document when it is whole.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<Document> {
        if self.text.is_empty() && bytes != b"{" {
            return whole(bytes);
        }
        if self.text.len() + bytes.len() > MAX_DOCUMENT {
            self.text.clear();
            return None;
        }
        self.text.push_str(&String::from_utf8_lossy(bytes));
        self.text.push('\n');
        // Only the outermost brace stands at the beginning of a line.
        (bytes == b"}").then(|| whole(std::mem::take(&mut self.text).as_bytes())).flatten()
    }
}

/// Other JSON on a line of its own is no document: the CLI prints what a slash command shows, too (`/memory show`).
fn whole(bytes: &[u8]) -> Option<Document> {
    let read = line::with_json(bytes, |text| serde_json::from_str::<Document>(text)).ok();
    read.filter(|document| document.response.is_some() || document.error.is_some())
}

/// The last document in a text. It is written twice when the limit of turns was reached (`max_turns_json`).
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
