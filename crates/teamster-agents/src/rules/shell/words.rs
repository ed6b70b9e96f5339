//! The words of a command as the program receives them.

use rable::{Node, NodeKind};

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The text without quotes. Expansions that are only known at run time are omitted.
    pub(super) text: String,
    /// Whether the text is complete: the word contains no expansion.
    pub(super) fixed: bool,
}

impl Word {
    pub(super) fn fixed(text: &str) -> Self {
        Self { text: text.to_owned(), fixed: true }
    }

    /// Reads a word of the syntax tree.
    pub(super) fn read(node: &Node) -> Self {
        let NodeKind::Word { value, parts, .. } = &node.kind else {
            return Self { text: String::new(), fixed: false };
        };
        let mut reader = Reader { word: Self::fixed(""), quoted: false };
        for part in parts {
            match &part.kind {
                NodeKind::WordLiteral { value } => reader.literal(value),
                NodeKind::AnsiCQuote { decoded, .. } => reader.word.text.push_str(decoded),
                NodeKind::LocaleString { inner, .. } if !inner.contains(['\\', '$', '`']) => {
                    reader.word.text.push_str(inner);
                }
                _ => reader.word.fixed = false,
            }
        }
        if parts.is_empty() && !value.is_empty() {
            reader.literal(value);
        }
        reader.word.fixed |= reader.word.text == "[" && value == "[";
        reader.word
    }
}

struct Reader {
    word: Word,
    /// Whether the reader is between double quotes, which may contain several parts.
    quoted: bool,
}

impl Reader {
    fn literal(&mut self, text: &str) {
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '"' => self.quoted = !self.quoted,
                '\\' if self.quoted => match characters.next_if(|c| matches!(c, '$' | '`' | '"' | '\\' | '\n')) {
                    Some('\n') => {}
                    Some(escaped) => self.word.text.push(escaped),
                    None => self.word.text.push('\\'),
                },
                '\\' => match characters.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.word.text.push(escaped),
                },
                '\'' if !self.quoted => self.word.text.extend(characters.by_ref().take_while(|c| *c != '\'')),
                _ => {
                    let expands = if self.quoted {
                        matches!(character, '$' | '`')
                    } else {
                        matches!(character, '$' | '`' | '*' | '?' | '[' | '(' | '{')
                    };
                    self.word.fixed &= !expands;
                    self.word.text.push(character);
                }
            }
        }
    }
}
