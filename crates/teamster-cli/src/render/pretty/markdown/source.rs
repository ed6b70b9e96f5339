//! The blocks of a Markdown text.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

/// The extensions of `CommonMark` that agents use.
pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// A block at the top level of a text.
pub(super) struct Block {
    pub(super) range: Range<usize>,
    kind: BlockKind,
    /// The start of each item of a list.
    pub(super) items: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    /// It is one line.
    Line,
    /// A blank line ends it.
    Paragraph,
    /// Only another block ends it.
    Container,
}

impl Block {
    /// Whether no further line can change the block.
    pub(super) fn is_complete(&self, text: &str) -> bool {
        match self.kind {
            BlockKind::Line => true,
            BlockKind::Paragraph => ends_with_blank_line(text),
            BlockKind::Container => false,
        }
    }
}

/// Returns the blocks of a text. Link definitions are not blocks.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match &event {
            Event::Start(tag) => {
                let start = line_start(text, range.start);
                if depth == 0 {
                    blocks.push(Block { range: start..range.end, kind: kind(tag, text, &range), items: Vec::new() });
                } else if let (1, Tag::Item, Some(block)) = (depth, tag, blocks.last_mut()) {
                    block.items.push(start);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => blocks.push(Block { range, kind: BlockKind::Line, items: Vec::new() }),
            _ => {}
        }
    }
    // The range of some blocks ends before their line end.
    for block in &mut blocks {
        let (inside, after) = text.split_at_checked(block.range.end).unwrap_or((text, ""));
        block.range.end += usize::from(!inside.ends_with('\n') && after.starts_with('\n'));
    }
    blocks
}

fn kind(tag: &Tag<'_>, text: &str, range: &Range<usize>) -> BlockKind {
    match tag {
        Tag::Heading { .. } if text.get(range.clone()).is_some_and(|text| text.trim_start().starts_with('#')) => {
            BlockKind::Line
        }
        Tag::Paragraph | Tag::Table(_) | Tag::Heading { .. } => BlockKind::Paragraph,
        _ => BlockKind::Container,
    }
}

/// Returns the start of the line with this offset, if only white space is before it on the line.
fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.len() - before.rsplit('\n').next().filter(|start| start.trim().is_empty()).map_or(0, str::len)
}

/// Whether a text ends with a blank line.
pub(super) fn ends_with_blank_line(text: &str) -> bool {
    text.ends_with('\n') && text.lines().next_back().is_some_and(|line| line.trim().is_empty())
}
