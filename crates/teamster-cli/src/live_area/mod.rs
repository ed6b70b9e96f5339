//! The live area: the lines below the finished output of a terminal, which are redrawn.
//!
//! Finished output is written once, above the area, and stays in the scrollback of the terminal. The area shows what
//! changes: unfinished output, the status line, the input. It is erased and drawn again with each change, as one
//! synchronized update, so that it does not flicker.
//!
//! Invariants: finished output is never erased; an area is never higher than the terminal; after
//! [`LiveArea::hide`], nothing of the area is left on the screen.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use crossterm::cursor::{Hide, MoveTo, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};

use crate::printable::Printable;

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    /// Returns the current size of the terminal on standard output. It changes when the window is resized.
    pub(crate) fn of_stdout() -> Self {
        let size = terminal_size::terminal_size_of(io::stdout());
        let (columns, rows) = size.map_or((0, 0), |(width, height)| (usize::from(width.0), usize::from(height.0)));
        Self { columns: if columns == 0 { 80 } else { columns }, rows: if rows == 0 { 24 } else { rows } }
    }
}

/// The number of bytes of an incomplete line that are shown.
const MAX_INCOMPLETE: usize = 4096;

/// The position of the cursor in the area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The line of the area, starting at 0.
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// The content of the area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// The lines. Each is truncated to the width of the terminal. If they are higher than the terminal, the first are not shown.
    pub(crate) lines: Vec<Printable>,
    /// The position of the cursor. Without one, the cursor stays at the end of the last line.
    pub(crate) cursor: Option<Cursor>,
}

impl Content {
    fn without_styles(mut self) -> Self {
        self.lines.iter_mut().for_each(|line| *line = line.without_styles());
        self
    }
}

/// A terminal with finished output and a live area below it.
///
/// Output that is written with [`Write`] is finished. It appears with the next [`show`](Self::show), or when it is flushed.
/// An incomplete line is kept until its end arrives, and shown as the first lines of the area.
pub(crate) struct LiveArea {
    terminal: Box<dyn Write + Send>,
    size: Box<dyn Fn() -> Size + Send>,
    /// Whether the terminal gets styles.
    styles: bool,
    /// Finished output that is not written yet.
    waiting: Vec<u8>,
    content: Content,
    /// What is on the screen, if anything is.
    drawn: Option<Drawn>,
}

/// An area on the screen.
#[derive(Debug)]
struct Drawn {
    content: Content,
    /// The size of the terminal for which it was drawn.
    size: Size,
    /// The columns of each line above the cursor, and of the cursor's line up to the cursor.
    above: Vec<usize>,
}

impl LiveArea {
    /// Creates an empty area. `size` returns the current size of the terminal.
    pub(crate) fn new(terminal: Box<dyn Write + Send>, size: impl Fn() -> Size + Send + 'static, styles: bool) -> Self {
        let (waiting, content) = (Vec::new(), Content::default());
        Self { terminal, size: Box::new(size), styles, waiting, content, drawn: None }
    }

    /// Creates an area on standard output, which must be a terminal.
    pub(crate) fn of_stdout() -> Self {
        let styles = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        Self::new(Box::new(io::stdout()), Size::of_stdout, styles)
    }

    /// Writes the finished output, and draws this content below it instead of the previous content.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(crate) fn show(&mut self, content: Content) -> io::Result<()> {
        self.content = if self.styles { content } else { content.without_styles() };
        self.update()
    }

    /// Writes the finished output, also its incomplete line, and erases the area: at the end, or before others write to the
    /// terminal. The next change draws the area again.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(crate) fn hide(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.erase(&mut bytes)?;
        bytes.append(&mut self.waiting);
        self.send(&bytes)
    }

    /// Erases the area, and removes its content.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.content = Content::default();
        self.hide()
    }

    /// Clears the screen. The next change draws the area again.
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(crate) fn clear_screen(&mut self) -> io::Result<()> {
        self.hide()?;
        let mut bytes = Vec::new();
        queue!(bytes, Clear(ClearType::All), MoveTo(0, 0))?;
        self.send(&bytes)
    }

    /// Copies a text to the clipboard of the terminal (OSC 52).
    ///
    /// # Errors
    /// Returns the error of the terminal.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        self.send(format!("\x1b]52;c;{}\x07", BASE64_STANDARD.encode(text)).as_bytes())
    }

    /// Whether the area has no content.
    pub(crate) fn is_empty(&self) -> bool {
        self.content.lines.is_empty()
    }

    fn update(&mut self) -> io::Result<()> {
        let complete = self.waiting.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let size = (self.size)();
        let content = self.whole_content(complete, size);
        let is_drawn = self.drawn.as_ref().is_some_and(|drawn| drawn.content == content && drawn.size == size);
        if complete == 0 && (is_drawn || self.drawn.is_none() && content.lines.is_empty()) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        queue!(bytes, BeginSynchronizedUpdate, Hide)?;
        self.erase(&mut bytes)?;
        bytes.extend(self.waiting.drain(..complete));
        if !content.lines.is_empty() {
            self.drawn = Some(draw(content, size, &mut bytes)?);
        }
        queue!(bytes, Show, EndSynchronizedUpdate)?;
        self.send(&bytes)
    }

    /// Returns the content with the incomplete line of the finished output before it.
    fn whole_content(&self, complete: usize, size: Size) -> Content {
        let mut content = self.content.clone();
        let incomplete = self.waiting.get(complete..).unwrap_or_default();
        if incomplete.is_empty() {
            return content;
        }
        let lines = Printable::of_output(incomplete, MAX_INCOMPLETE).rows(size.columns.saturating_sub(1));
        content.cursor = content.cursor.map(|cursor| Cursor { row: cursor.row + lines.len(), ..cursor });
        content.lines.splice(0..0, lines);
        content
    }

    /// Adds what erases the drawn area. The cursor is then at the start of the next finished line.
    fn erase(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let Some(drawn) = self.drawn.take() else { return Ok(()) };
        // A terminal that became narrower has wrapped the lines.
        let columns = (self.size)().columns.max(1);
        let cursor = drawn.above.last().map_or(0, |columns_before| columns_before / columns);
        let lines = drawn.above.split_last().map_or(&[][..], |(_, lines)| lines);
        let above: usize = lines.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        let up = u16::try_from(above + cursor).unwrap_or(u16::MAX);
        if up > 0 {
            queue!(bytes, MoveUp(up))?;
        }
        queue!(bytes, MoveToColumn(0), Clear(ClearType::FromCursorDown))
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.terminal.write_all(bytes)?;
        self.terminal.flush()
    }
}

/// Adds what draws the content, and returns how to erase it.
fn draw(content: Content, size: Size, bytes: &mut Vec<u8>) -> io::Result<Drawn> {
    // In the last column, terminals differ in when they wrap.
    let width = size.columns.saturating_sub(1).max(1);
    let hidden = content.lines.len().saturating_sub(size.rows.saturating_sub(1).max(1));
    let lines: Vec<Printable> = content.lines.iter().skip(hidden).map(|line| line.cut_styled(width)).collect();
    let last = lines.len().saturating_sub(1);
    for (row, line) in lines.iter().enumerate() {
        bytes.extend_from_slice(line.as_str().as_bytes());
        if row < last {
            bytes.push(b'\n');
        }
    }
    let columns: Vec<usize> = lines.iter().map(Printable::columns_without_styles).collect();
    let end = Cursor { row: last, column: columns.last().copied().unwrap_or(0) };
    let cursor = content.cursor.map_or(end, |cursor| Cursor {
        row: cursor.row.saturating_sub(hidden).min(last),
        column: cursor.column.min(width),
    });
    let up = u16::try_from(last - cursor.row).unwrap_or(u16::MAX);
    if up > 0 {
        queue!(bytes, MoveUp(up))?;
    }
    queue!(bytes, MoveToColumn(u16::try_from(cursor.column).unwrap_or(u16::MAX)))?;
    let above = columns.into_iter().take(cursor.row).chain([cursor.column]).collect();
    Ok(Drawn { content, size, above })
}

impl Write for LiveArea {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.styles {
            self.waiting.extend_from_slice(bytes);
        } else {
            self.waiting.extend(anstream::adapter::strip_bytes(bytes).flatten());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.update()
    }
}

impl fmt::Debug for LiveArea {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LiveArea").field("drawn", &self.drawn).finish_non_exhaustive()
    }
}
