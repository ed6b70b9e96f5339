//! Splits a Markdown text into parts that a service accepts.

mod fence;

use unicode_segmentation::UnicodeSegmentation as _;

use self::fence::{Fence, normalized, opening};
use crate::capabilities::{TextLimit, TextUnit};

/// The smallest limit for which a code block can be split: its markers and some content must fit.
pub const MIN_LIMIT: usize = 64;

/// Splits a Markdown text into parts of at most `limit`. No part is empty; a text without visible characters has no part.
///
/// - A code block that spans parts is closed and opened again, with its info string. An unclosed block is closed at the end.
/// - Parts end at a paragraph if that fills at least half of the part, else at a line, else at a word, else at a grapheme. Only a
///   grapheme that is longer than a part is cut.
/// - Blank lines around a split are dropped, outside of code.
///
/// A limit below [`MIN_LIMIT`] is raised to it.
///
/// ```
/// use teamster_channel::{TextLimit, TextUnit, split};
///
/// let limit = TextLimit { max: 64, unit: TextUnit::Chars };
/// let code = format!("```rust\n{}```", "let x = 1;\n".repeat(8));
/// let parts = split(&code, limit);
/// assert_eq!(parts.len(), 2);
/// assert!(parts.iter().all(|part| part.starts_with("```rust\n") && part.ends_with("\n```")));
/// ```
pub fn split(text: &str, limit: TextLimit) -> Vec<String> {
    let splitter = Splitter { max: limit.max.max(MIN_LIMIT), unit: limit.unit };
    let text = normalized(text, splitter.max / 4, splitter.unit);
    let mut parts = Vec::new();
    let (mut rest, mut open): (&str, Option<Fence>) = (&text, None);
    loop {
        rest = after_border(rest, &mut open);
        if rest.is_empty() {
            return parts;
        }
        let cut = splitter.cut(rest, open.as_ref());
        let (head, tail) = rest.split_at_checked(cut.end).unwrap_or((rest, ""));
        parts.push(part(head, open.as_ref(), &cut));
        (rest, open) = (tail, cut.open);
    }
}

struct Splitter {
    max: usize,
    unit: TextUnit,
}

/// Where a part ends.
struct Cut {
    /// The end in bytes.
    end: usize,
    /// The code block that is open there.
    open: Option<Fence>,
    /// Whether the part starts like a code block although its whole line does not. A backslash keeps it a text.
    escape: bool,
}

/// Skips what would make an empty start of the next part.
fn after_border<'a>(rest: &'a str, open: &mut Option<Fence>) -> &'a str {
    if let Some(fence) = open {
        let line = rest.split_inclusive('\n').next().unwrap_or("");
        if !fence.is_closed_by(line) {
            return rest;
        }
        *open = None;
        return after_border(rest.get(line.len()..).unwrap_or(""), open);
    }
    let blank: usize = rest.split_inclusive('\n').take_while(|line| line.trim().is_empty()).map(str::len).sum();
    rest.get(blank..).unwrap_or("")
}

fn part(head: &str, opened: Option<&Fence>, cut: &Cut) -> String {
    let mut part = opened.map(Fence::reopen).unwrap_or_default();
    if cut.escape {
        part.push('\\');
    }
    match &cut.open {
        Some(fence) => {
            part.push_str(head.strip_suffix('\n').unwrap_or(head));
            part.push_str(&fence.close());
        }
        None => part.push_str(head.trim_end()),
    }
    part
}

impl Splitter {
    fn length(&self, text: &str) -> usize {
        self.unit.length(text)
    }

    fn closing(&self, open: Option<&Fence>) -> usize {
        open.map_or(0, |fence| self.length(&fence.close()))
    }

    /// Selects the end of the part that starts with `rest`.
    fn cut(&self, rest: &str, open: Option<&Fence>) -> Cut {
        let mut used = open.map_or(0, |fence| self.length(&fence.reopen()));
        let start = used;
        let mut state = open.cloned();
        let mut offset = 0;
        let (mut paragraph, mut line_end) = (None, None);
        for line in rest.split_inclusive('\n') {
            let was_open = state.is_some();
            state = Fence::after(state, line);
            let end = used.saturating_add(self.length(line.strip_suffix('\n').unwrap_or(line)));
            used = used.saturating_add(self.length(line));
            offset += line.len();
            if end > self.max {
                break;
            }
            // A part must not end directly after the start of a code block.
            let has_started = !was_open && state.is_some();
            if end.saturating_add(self.closing(state.as_ref())) > self.max || (has_started && offset < rest.len()) {
                continue;
            }
            let cut = (offset, state.clone());
            if offset == rest.len() {
                return Cut { end: cut.0, open: cut.1, escape: false };
            }
            let ends_paragraph = state.is_none() && (was_open || line.trim().is_empty());
            if ends_paragraph && end >= self.max / 2 {
                paragraph = Some(cut.clone());
            }
            line_end = Some(cut);
        }
        match paragraph.or(line_end) {
            Some((end, open)) => Cut { end, open, escape: false },
            None => self.cut_line(rest, open, start),
        }
    }

    /// Cuts inside of the first line, or inside of the first line of the code block that starts here.
    fn cut_line(&self, rest: &str, open: Option<&Fence>, start: usize) -> Cut {
        let first = rest.split_inclusive('\n').next().unwrap_or(rest);
        let state = Fence::after(open.cloned(), first);
        let starts_block = open.is_none() && state.is_some();
        let lead = if starts_block { first.len() } else { 0 };
        let state = if starts_block { state } else { open.cloned() };
        let (before, line) = rest.split_at_checked(lead).unwrap_or(("", rest));
        let line = line.split('\n').next().unwrap_or(line);
        // One unit is reserved for the backslash.
        let taken = start + self.length(before) + self.closing(state.as_ref()) + 1;
        let budget = self.max.saturating_sub(taken);
        let end = self.position(line, budget, state.as_ref());
        let piece = line.get(..end).unwrap_or(line);
        let escape = state.is_none() && opening(piece).is_some();
        Cut { end: lead + end, open: state, escape }
    }

    /// Returns the position of the cut in a line that is too long.
    fn position(&self, line: &str, budget: usize, open: Option<&Fence>) -> usize {
        let hard = self.hard_position(line, budget);
        let head = line.get(..hard).unwrap_or(line);
        let word = head.char_indices().rev().find(|(_, character)| character.is_whitespace());
        let word = word.map(|(at, character)| at + character.len_utf8()).filter(|at| *at > hard / 2);
        let wanted = word.unwrap_or(hard);
        // The rest must not start like the border of a code block, nor must the piece be one.
        let is_good = |at: usize| {
            let (piece, rest) = line.split_at_checked(at).unwrap_or((line, ""));
            open.map_or_else(
                || opening(rest).is_none(),
                |fence| !fence.is_closed_by(rest) && !fence.is_closed_by(piece),
            )
        };
        let borders = line.grapheme_indices(true).map(|(at, _)| at).take_while(|at| *at < wanted);
        if is_good(wanted) {
            return wanted;
        }
        borders.filter(|at| *at > 0 && is_good(*at)).last().unwrap_or(wanted)
    }

    /// Returns the end of the last grapheme that fits, or of the last character if the first grapheme does not fit.
    fn hard_position(&self, line: &str, budget: usize) -> usize {
        let fits = |pieces: &mut dyn Iterator<Item = &str>| {
            let mut used = 0;
            let mut end = 0;
            for piece in pieces {
                used += self.length(piece);
                if used > budget {
                    break;
                }
                end += piece.len();
            }
            end
        };
        let graphemes = fits(&mut line.graphemes(true));
        if graphemes > 0 {
            return graphemes;
        }
        let characters = fits(&mut line.split_inclusive(|_| true));
        characters.max(line.chars().next().map_or(0, char::len_utf8))
    }
}

#[cfg(test)]
mod tests;
