//! The page that is written: where the cursor stands, and blank lines between what is of different kinds.

use std::io::{self, Write};

use anstyle::Style;

use crate::printable::Printable;

/// What a block of lines is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first line: who works.
    Heading,
    /// What the agent says. Each message stands alone.
    Speech,
    /// What the agent does, and what happens to it: one line each.
    Work,
}

/// Knows how the page ends. Everything that is written goes through it.
#[derive(Debug, Default)]
pub(super) struct Page {
    last: Option<Kind>,
    /// Line ends at the end of the page; two are a blank line.
    line_ends: usize,
}

impl Page {
    /// Begins a block: on a line of its own, and after a blank one if what stands above is of another kind.
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

    /// Ends the line, if it holds something.
    pub(super) fn end_line(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.last.is_some() && self.line_ends == 0 {
            self.write(&"\n".into(), Style::new(), out)?;
        }
        Ok(())
    }

    /// Whether nothing stands on the line.
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
