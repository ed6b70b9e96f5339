//! Text as the word check reads it: lower-case words with their lines.

/// Where a piece of text is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A comment, a docstring or a page.
    Prose,
    Literal,
    /// The name of a function, variable, module, field or variant.
    Name,
    /// The name of a struct, enum, trait or type alias.
    TypeName,
}

/// A piece of text, as lower-case words.
#[derive(Debug)]
pub(super) struct Passage {
    pub(super) kind: Kind,
    pub(super) words: Vec<Word>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Starts at 1.
    pub(super) line: usize,
}

/// Splits text into lower-case words. Text between backquotes is left out.
pub(super) fn words(text: &str, first_line: usize) -> Vec<Word> {
    let mut words = Vec::new();
    let mut line = first_line;
    let mut rest = text;
    let mut word = String::new();
    while let Some(next) = rest.chars().next() {
        if next.is_alphanumeric() || (next == '\'' && !word.is_empty()) {
            word.extend(next.to_lowercase());
        } else {
            push_word(&mut words, &mut word, line);
        }
        let mut length = next.len_utf8();
        if next == '`' {
            length = code_length(rest);
        }
        let (passed, after) = rest.split_at(length);
        line += passed.matches('\n').count();
        rest = after;
    }
    push_word(&mut words, &mut word, line);
    words
}

fn push_word(words: &mut Vec<Word>, word: &mut String, line: usize) {
    if !word.is_empty() {
        let text = std::mem::take(word).trim_end_matches('\'').to_owned();
        words.push(Word { text, line });
    }
}

/// The length of the quoted code that text starts with, or of its backquotes if nothing closes them.
fn code_length(text: &str) -> usize {
    let quotes = text.len() - text.trim_start_matches('`').len();
    let (quote, rest) = text.split_at(quotes);
    rest.find(quote).map_or(quotes, |end| end + 2 * quotes)
}
