//! The prose of a Markdown page.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::text::{Kind, Passage, Word, words};

/// Returns the words of a page without its code.
pub(super) fn of(text: &str) -> Passage {
    let mut found = Vec::<Word>::new();
    let mut is_code = false;
    let mut at = 0;
    let mut line = 1;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Text(prose) if !is_code => {
                line += text.get(at..range.start).unwrap_or_default().matches('\n').count();
                at = at.max(range.start);
                found.extend(words(&prose, line));
            }
            _ => {}
        }
    }
    Passage { kind: Kind::Prose, words: found }
}
