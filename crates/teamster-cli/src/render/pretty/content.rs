//! Writes the agent's text as it streams, and the beginning of its thinking.

use std::io::{self, Write};

use teamster::event::{Delta, ToolId};

use super::Pretty;
use super::page::Kind;
use super::state::{ContentKind, ContentSource, OpenLine};
use super::style::{DIM, NORMAL, THOUGHT, indent};
use super::thinking::Thought;
use crate::printable::{Printable, printable};

impl Pretty {
    pub(super) fn write_delta(&mut self, kind: ContentKind, delta: &Delta, out: &mut dyn Write) -> io::Result<()> {
        let source = ContentSource { kind, message: delta.message_id.clone(), parent: delta.parent_tool_id.clone() };
        if self.source.as_ref() != Some(&source) {
            self.open = OpenLine::None;
            self.source = Some(source);
            self.finish_text(out)?;
        }
        let text = Printable::prose(&delta.text);
        match kind {
            ContentKind::Text => self.write_text(&text, delta.parent_tool_id.as_ref(), out),
            ContentKind::Thinking => self.write_thinking(&text, delta.parent_tool_id.as_ref(), out),
        }
    }

    fn write_text(&mut self, text: &Printable, parent: Option<&ToolId>, out: &mut dyn Write) -> io::Result<()> {
        let mut text = text.clone();
        let depth = self.depth(parent);
        if self.open != OpenLine::Text {
            text = text.without_leading_line_ends();
            if text.is_empty() {
                return Ok(());
            }
            self.place_under(parent, out)?;
            // The text of a subagent is shown as part of the work.
            self.page.begin(if depth == 0 { Kind::Text } else { Kind::Work }, out)?;
            self.open = OpenLine::Text;
        }
        if depth == 0 {
            let width = self.screen.text_width();
            return match self.markdown.as_mut().map(|markdown| markdown.push(&text, width)) {
                Some(lines) => self.write_lines(&lines, out),
                None => self.page.write(&text, NORMAL, out),
            };
        }
        for line in text.lines() {
            if self.page.at_line_start() && line.as_str() != "\n" {
                self.page.write(&indent(depth), NORMAL, out)?;
            }
            self.page.write(&line, DIM, out)?;
        }
        Ok(())
    }

    /// Writes text that the Markdown formatter has buffered.
    pub(super) fn finish_text(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let width = self.screen.text_width();
        match self.markdown.as_mut().map(|markdown| markdown.finish(width)) {
            Some(lines) => self.write_lines(&lines, out),
            None => Ok(()),
        }
    }

    fn write_lines(&mut self, lines: &[Printable], out: &mut dyn Write) -> io::Result<()> {
        for line in lines {
            self.page.write(line, NORMAL, out)?;
            self.page.write(&"\n".into(), NORMAL, out)?;
        }
        Ok(())
    }

    /// Writes the beginning of the thinking, at most one line.
    fn write_thinking(&mut self, text: &Printable, parent: Option<&ToolId>, out: &mut dyn Write) -> io::Result<()> {
        let mut thought = match self.open {
            OpenLine::Thought(thought) => thought,
            _ if text.as_str().trim_start().is_empty() => return Ok(()),
            _ => {
                let depth = self.depth(parent);
                self.place_under(parent, out)?;
                self.page.begin(Kind::Work, out)?;
                self.page.write(&printable!("{}✻ ", indent(depth)), THOUGHT, out)?;
                Thought::new(self.screen.width.saturating_sub(2 * depth + 2))
            }
        };
        let shown = thought.add(text);
        self.open = OpenLine::Thought(thought);
        self.page.write(&shown, THOUGHT, out)
    }
}
