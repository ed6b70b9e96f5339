//! Tables: aligned columns, or a list of cells if the terminal is too narrow.

use pulldown_cmark::Alignment;

use super::super::style::{BOLD, DIM};
use crate::printable::{Printable, columns, wrap};

const SEPARATOR: &str = " │ ";
const SEPARATOR_COLUMNS: usize = 3;

/// The width below which a column is not narrowed.
const NARROWEST: usize = 12;

/// A table whose cells are formatted.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    /// The rows, the header first.
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns the lines of the table.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        match self.widths(width) {
            Some(widths) => self.aligned(&widths),
            None => self.list(width),
        }
    }

    /// Returns the width of each column; `None` if they do not fit.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let cell = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| columns(cell));
        let widest = |column| self.rows.iter().map(|row| cell(row, column)).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..count).map(widest).collect();
        let room = width.checked_sub(SEPARATOR_COLUMNS * count.saturating_sub(1))?;
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max().filter(|widest| **widest > NARROWEST)?;
            *widest -= 1;
        }
        Some(widths)
    }

    fn aligned(&self, widths: &[usize]) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<String>> = (0..widths.len())
                .map(|column| {
                    let cell = row.get(column).map_or("", String::as_str);
                    let width = widths.get(column).copied().unwrap_or(0);
                    if columns(cell) > width { wrap(cell, width) } else { vec![cell.to_owned()] }
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            lines.extend((0..height).map(|line| self.line(&cells, line, widths, index == 0)));
            if index == 0 {
                let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
                lines.push(format!("{DIM}{rule}{DIM:#}"));
            }
        }
        lines
    }

    fn line(&self, cells: &[Vec<String>], line: usize, widths: &[usize], is_header: bool) -> String {
        let mut parts = Vec::new();
        for (column, width) in widths.iter().enumerate() {
            let cell = cells.get(column).and_then(|lines| lines.get(line)).map_or("", String::as_str);
            let space = width.saturating_sub(columns(cell));
            let before = match self.alignments.get(column) {
                Some(Alignment::Right) => space,
                Some(Alignment::Center) => space / 2,
                _ => 0,
            };
            let cell = if is_header { format!("{BOLD}{cell}{BOLD:#}") } else { cell.to_owned() };
            parts.push(format!("{}{cell}{}", " ".repeat(before), " ".repeat(space - before)));
        }
        parts.join(&format!("{DIM}{SEPARATOR}{DIM:#}")).trim_end().to_owned()
    }

    /// Returns one line for each cell, with the name of its column.
    fn list(&self, width: usize) -> Vec<String> {
        let Some((header, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        if rows.is_empty() {
            lines.extend(header.iter().flat_map(|name| wrap(&format!("{BOLD}{name}{BOLD:#}"), width)));
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(String::new());
            }
            for (column, cell) in row.iter().enumerate() {
                let name = header.get(column).map_or("", String::as_str);
                lines.extend(wrap(&format!("{BOLD}{name}{BOLD:#}: {cell}"), width));
            }
        }
        lines
    }
}

/// Converts formatted text.
pub(super) fn printable(line: &str) -> Printable {
    Printable::of_escaped(format_args!("{line}"))
}
