//! The comments and string literals of a Rust file.

use super::text::{Kind, Passage, words};

/// Returns a passage for each literal and for each comment. Comments on consecutive lines are one passage.
pub(super) fn of(text: &str) -> Vec<Passage> {
    let mut lexer = Lexer { rest: text, line: 1, passages: Vec::new(), comment: None };
    while let Some(next) = lexer.rest.chars().next() {
        lexer.token(next);
    }
    lexer.end_comment();
    lexer.passages
}

struct Lexer<'a> {
    rest: &'a str,
    /// Starts at 1.
    line: usize,
    passages: Vec<Passage>,
    comment: Option<Comment>,
}

/// Comments on consecutive lines, so far.
struct Comment {
    text: String,
    first_line: usize,
    last_line: usize,
}

impl Lexer<'_> {
    fn token(&mut self, next: char) {
        if self.rest.starts_with("//") {
            self.line_comment();
        } else if self.rest.starts_with("/*") {
            self.block_comment();
        } else if next == '"' {
            self.literal("\"", true);
        } else if next == '\'' {
            self.character_or_lifetime();
        } else if next.is_alphanumeric() || next == '_' {
            self.identifier();
        } else {
            self.skip(next.len_utf8());
        }
    }

    /// Removes the start of the text, and returns it.
    fn take(&mut self, length: usize) -> String {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken.to_owned()
    }

    fn skip(&mut self, length: usize) {
        _ = self.take(length);
    }

    fn line_comment(&mut self) {
        let line = self.line;
        let length = self.rest.find('\n').unwrap_or(self.rest.len());
        let taken = self.take(length);
        let text = taken.trim_start_matches('/').trim_start_matches('!');
        if let Some(comment) = self.comment.as_mut().filter(|comment| comment.last_line + 1 == line) {
            comment.text.push('\n');
            comment.text.push_str(text);
            comment.last_line = line;
        } else {
            self.end_comment();
            self.comment = Some(Comment { text: text.to_owned(), first_line: line, last_line: line });
        }
    }

    fn end_comment(&mut self) {
        if let Some(Comment { text, first_line, .. }) = self.comment.take() {
            self.passages.push(Passage { kind: Kind::Prose, words: words(&text, first_line) });
        }
    }

    fn block_comment(&mut self) {
        let line = self.line;
        let length = self.rest.find("*/").map_or(self.rest.len(), |end| end + 2);
        let text = self.take(length);
        self.passages.push(Passage { kind: Kind::Prose, words: words(&text, line) });
    }

    /// Reads a string literal from its first quote to `end`.
    fn literal(&mut self, end: &str, has_escapes: bool) {
        self.skip(1);
        let line = self.line;
        let mut length = 0;
        while let Some(rest) = self.rest.get(length..).filter(|rest| !rest.is_empty() && !rest.starts_with(end)) {
            let mut letters = rest.chars();
            let first = letters.next();
            let escaped = letters.next().filter(|_| has_escapes && first == Some('\\'));
            length += [first, escaped].into_iter().flatten().map(char::len_utf8).sum::<usize>();
        }
        let text = self.take(length);
        self.skip(end.len());
        self.passages.push(Passage { kind: Kind::Literal, words: words(&text, line) });
    }

    fn character_or_lifetime(&mut self) {
        let mut letters = self.rest.chars().skip(1);
        let (first, second) = (letters.next(), letters.next());
        if first == Some('\\') {
            // The quote of `'\''` is not the end.
            let end = self.rest.get(3..).and_then(|rest| rest.find('\'')).map_or(1, |end| end + 4);
            self.skip(end);
        } else if let (Some(letter), Some('\'')) = (first, second) {
            self.skip(letter.len_utf8() + 2);
        } else {
            self.skip(1);
        }
    }

    /// Reads an identifier or a number, and the literal that it is the prefix of.
    fn identifier(&mut self) {
        let is_inside = |letter: char| letter.is_alphanumeric() || letter == '_';
        let length = self.rest.find(|letter| !is_inside(letter)).unwrap_or(self.rest.len());
        let name = self.take(length);
        match name.as_str() {
            "r" | "br" | "cr" => {
                let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
                if self.rest.get(hashes..).is_some_and(|rest| rest.starts_with('"')) {
                    self.skip(hashes);
                    self.literal(&format!("\"{}", "#".repeat(hashes)), false);
                }
            }
            _ => {} // the quote after `b` or `c` starts an ordinary literal
        }
    }
}
