//! Wraps text with styles at words.

use super::Printable;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// Wraps a line. Its styles have no width, and end at the end of each returned line.
pub(crate) fn wrap(line: &str, width: usize) -> Vec<String> {
    wrap_indented(line, width, "")
}

/// Wraps a line. The lines after the first are indented.
fn wrap_indented(line: &str, width: usize, indent: &str) -> Vec<String> {
    let options = Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .subsequent_indent(indent);
    let mut active = String::new();
    let close = |active: &str| if active.is_empty() { "" } else { "\x1b[0m" };
    textwrap::wrap(line, options)
        .iter()
        .map(|wrapped| {
            let start = active.clone();
            follow(wrapped, &mut active);
            format!("{start}{wrapped}{}", close(&active))
        })
        .collect()
}

impl Printable {
    /// Wraps text at words. The lines after the first are indented by this number of columns.
    pub(crate) fn wrapped(&self, width: usize, indent: usize) -> Self {
        let indent = " ".repeat(indent);
        let lines = self.as_str().split('\n').flat_map(|line| wrap_indented(line, width, &indent));
        Self(lines.collect::<Vec<_>>().join("\n"))
    }
}

/// Updates the active styles by the styles in a text.
fn follow(text: &str, active: &mut String) {
    for (at, _) in text.match_indices('\x1b') {
        let rest = text.get(at..).unwrap_or_default();
        let Some(sequence) = rest.find('m').and_then(|end| rest.get(..=end)) else { continue };
        if sequence == "\x1b[0m" {
            active.clear();
        } else {
            active.push_str(sequence);
        }
    }
}

/// Returns the width of a text in columns, without its styles.
pub(crate) fn columns(text: &str) -> usize {
    textwrap::core::display_width(text)
}
