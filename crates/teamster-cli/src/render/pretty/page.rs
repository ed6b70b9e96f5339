//! Tracks the end of the output, and writes blank lines between blocks of different kinds.

use std::io::{self, Write};

use anstyle::Style;

use crate::printable::Printable;

/// The kind of a block of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first line, which names the agent.
    Heading,
    /// A message of the agent.
    Text,
    /// Tool calls and other events, one line each.
    Work,
}

/// The state of the output. All output of the renderer goes through it.
#[derive(Debug, Default)]
pub(super) struct Page {
    last: Option<Kind>,
    /// The number of line ends at the end of the output; two make a blank line.
    line_ends: usize,
}

impl Page {
    /// Starts a block on a new line, after a blank line unless two blocks of [`Kind::Work`] follow each other.
    pub(super) fn begin(&mut self, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
        let needed = match self.last {
            None => 0,
            Some(Kind::Work) if kind == Kind::Work => 1,
            Some(_) => 2,
        };
        while self.line_ends < needed {
            self.write(&"\n".into(), Style::new(), out)?;
        }
        self.last = Some(kind);
        Ok(())
    }

    /// Returns the blank lines that [`begin`](Self::begin) would write.
    pub(super) fn blank_lines_before(&self, kind: Kind) -> Vec<Printable> {
        let is_separate = self.last.is_some_and(|last| !(last == Kind::Work && kind == Kind::Work));
        let count = if is_separate { 2_usize.saturating_sub(self.line_ends.max(1)) } else { 0 };
        vec![Printable::default(); count]
    }

    /// Ends the line, unless it is empty.
    pub(super) fn end_line(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.last.is_some() && self.line_ends == 0 {
            self.write(&"\n".into(), Style::new(), out)?;
        }
        Ok(())
    }

    /// Returns whether the line is empty.
    pub(super) fn at_line_start(&self) -> bool {
        self.last.is_none() || self.line_ends > 0
    }

    /// Writes text.
    pub(super) fn write(&mut self, text: &Printable, style: Style, out: &mut dyn Write) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let plain = text.as_str();
        let ends = plain.len() - plain.trim_end_matches('\n').len();
        self.line_ends = if ends == plain.len() { self.line_ends + ends } else { ends };
        text.styled(style).write(out)
    }
}
