//! Formats Markdown as it streams.
//!
//! The text is parsed again with each complete line; if it is long, only after it has grown by a part of its length. Blocks
//! that can no longer change are finished: their lines are written once. The last block is open, and its lines are shown until
//! it is finished. If their layout takes long, they are updated less often.
//!
//! Invariants: no text is lost, except marks that are replaced by styles; code is verbatim; the finished lines do not depend
//! on how the text is split into deltas; the cost is proportional to the length of the text.

mod code_block;
mod highlight;
mod layout;
mod source;
mod table;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use self::code_block::CodeBlock;
use self::layout::layout;
use self::source::{blocks, ends_with_blank_line};
use crate::printable::Printable;

/// The maximum size of the open block in bytes. A larger block is finished as far as it is complete.
const MAX_OPEN: usize = 32 << 10;

/// A shorter text is parsed with each line, and laid out with each change.
const SHORT: usize = 1 << 10;

/// The part of its length by which a long text grows between two parses.
const GROWTH: usize = 8;

/// The part of the time that the layout of the open block may take.
const MAX_LOAD: u32 = 8;

/// A Markdown text that arrives in parts.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// The text that is not finished, escaped for the terminal.
    open: String,
    /// The open code block with delimiters, whose complete lines are finished.
    code: Option<CodeBlock>,
    /// Whether the finished text ends with a blank line.
    after_blank_line: bool,
    /// Whether anything was finished.
    has_finished: bool,
    /// The length of the open text when it was parsed.
    parsed_at: usize,
    /// The lines of the open block, as they were laid out last.
    shown: Option<Shown>,
}

/// The lines of the open block.
#[derive(Debug)]
struct Shown {
    lines: Vec<Printable>,
    /// The length of the open text.
    length: usize,
    width: usize,
    /// The end of the layout.
    at: Instant,
    /// The duration of the layout.
    cost: Duration,
}

impl Shown {
    /// Whether the lines are current, or so expensive that they may be older.
    fn is_usable(&self, length: usize, width: usize) -> bool {
        let may_be_older = self.length >= SHORT && self.at.elapsed() < self.cost * MAX_LOAD;
        self.width == width && (self.length == length || may_be_older)
    }
}

impl Markdown {
    /// Adds text. Returns the lines that are finished.
    pub(super) fn push(&mut self, text: &Printable, width: usize) -> Vec<Printable> {
        self.open.push_str(text.as_str());
        let mut lines = Vec::new();
        if text.as_str().contains('\n') && (self.code.is_some() || self.is_parse_due()) {
            while self.advance(width, &mut lines) {}
            self.parsed_at = self.open.len();
        }
        lines
    }

    /// Whether the open text has grown enough since it was parsed.
    fn is_parse_due(&self) -> bool {
        let length = self.open.len();
        !(SHORT..MAX_OPEN).contains(&length) || length >= self.parsed_at + self.parsed_at / GROWTH
    }

    /// Ends the text. Returns the remaining lines.
    pub(super) fn finish(&mut self, width: usize) -> Vec<Printable> {
        if !self.open.is_empty() && !self.open.ends_with('\n') {
            self.open.push('\n');
        }
        let mut lines = Vec::new();
        while self.advance(width, &mut lines) {}
        self.finish_until(self.open.len(), width, &mut lines);
        *self = Self::default();
        lines
    }

    /// Returns the lines of the open block. Of a very long line, only the end is shown until it is finished.
    pub(super) fn tail(&mut self, width: usize) -> Vec<Printable> {
        if let Some(shown) = self.shown.as_ref().filter(|shown| shown.is_usable(self.open.len(), width)) {
            return shown.lines.clone();
        }
        let start = Instant::now();
        let from = self.open.ceil_char_boundary(self.open.len().saturating_sub(2 * MAX_OPEN));
        let mut end = Self {
            open: self.open.get(from..).unwrap_or_default().to_owned(),
            code: self.code.clone(),
            after_blank_line: self.after_blank_line,
            has_finished: self.has_finished,
            ..Self::default()
        };
        let mut lines = Vec::new();
        end.finish_until(end.open.len(), width, &mut lines);
        let (length, at, cost) = (self.open.len(), Instant::now(), start.elapsed());
        self.shown = Some(Shown { lines: lines.clone(), length, width, at, cost });
        lines
    }

    /// Finishes what the complete lines decide. Returns whether more may be decided.
    fn advance(&mut self, width: usize, lines: &mut Vec<Printable>) -> bool {
        let Some(complete) = self.open.rfind('\n').map(|end| end + 1) else { return false };
        if let Some(block) = self.code.take() {
            return self.advance_code(block, lines);
        }
        let text = self.open.get(..complete).unwrap_or_default();
        let blocks = blocks(text);
        let Some(last) = blocks.last() else {
            // Only blank lines, or definitions of links, which may be continued.
            if complete > MAX_OPEN {
                self.finish_until(complete, width, lines);
            }
            return false;
        };
        if let Some(block) = CodeBlock::opened_by(text.get(last.range.start..).unwrap_or_default()) {
            let start = last.range.start;
            self.finish_until(start, width, lines);
            let end = self.open.find('\n').map_or(self.open.len(), |end| end + 1);
            self.separate(lines);
            lines.push(block.opening());
            self.drain(end);
            self.code = Some(block);
            return true;
        }
        let end = if last.is_complete(text) || complete > MAX_OPEN {
            complete
        } else {
            last.items.last().copied().filter(|_| last.items.len() > 1).unwrap_or(last.range.start)
        };
        if end == 0 {
            return false;
        }
        self.finish_until(end, width, lines);
        true
    }

    /// Finishes the complete lines of the open code block.
    fn advance_code(&mut self, mut block: CodeBlock, lines: &mut Vec<Printable>) -> bool {
        let mut at = 0;
        while let Some((line, _)) = self.open.get(at..).and_then(|rest| rest.split_once('\n')) {
            at += line.len() + 1;
            if block.is_closed_by(line) {
                lines.push(code_block::delimiter(line));
                self.drain(at);
                return true;
            }
            lines.push(block.code(line));
        }
        self.drain(at);
        self.code = Some(block);
        false
    }

    /// Finishes the open text up to an offset.
    fn finish_until(&mut self, end: usize, width: usize, lines: &mut Vec<Printable>) {
        if let Some(block) = &mut self.code {
            // The incomplete line of a code block.
            let line = self.open.get(..end).unwrap_or_default().trim_end_matches('\n');
            if !line.is_empty() {
                lines.push(block.code(line));
            }
            return self.drain(end);
        }
        let text = self.open.get(..end).unwrap_or_default().to_owned();
        let mut at = 0;
        for block in blocks(&text) {
            self.literal(text.get(at..block.range.start).unwrap_or_default(), lines);
            self.separate(lines);
            let source = text.get(block.range.clone()).unwrap_or_default();
            lines.extend(layout(source, width));
            (at, self.has_finished) = (block.range.end, true);
            self.after_blank_line = ends_with_blank_line(source);
        }
        self.literal(text.get(at..).unwrap_or_default(), lines);
        self.drain(end);
    }

    /// Writes text between blocks: definitions of links, which have no other output.
    fn literal(&mut self, text: &str, lines: &mut Vec<Printable>) {
        for line in text.lines() {
            if line.trim().is_empty() {
                self.after_blank_line = true;
            } else {
                self.separate(lines);
                lines.push(Printable::of_escaped(format_args!("{line}")));
                (self.after_blank_line, self.has_finished) = (false, true);
            }
        }
    }

    /// Writes the blank line before a block.
    fn separate(&mut self, lines: &mut Vec<Printable>) {
        if self.after_blank_line && self.has_finished {
            lines.push(Printable::default());
        }
        (self.after_blank_line, self.has_finished) = (false, true);
    }

    /// Removes finished text. The lines that were shown contain it.
    fn drain(&mut self, end: usize) {
        (self.shown, self.parsed_at) = (None, 0);
        self.open.drain(..end.min(self.open.len()));
    }
}
