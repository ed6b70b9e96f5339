//! The borders of code blocks.

use crate::capabilities::TextUnit;

/// The longest marker of a code block. A longer one is a line of text.
const MAX_MARKER: usize = 16;

/// An open code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    marker: String,
    info: String,
}

impl Fence {
    /// Returns the line that opens the block again.
    pub(super) fn reopen(&self) -> String {
        format!("{}{}\n", self.marker, self.info)
    }

    /// Returns the end of a part inside of the block.
    pub(super) fn close(&self) -> String {
        format!("\n{}", self.marker)
    }

    /// Returns whether a line closes the block.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        let sign = self.marker.chars().next().unwrap_or('`');
        line.len() >= self.marker.len() && line.chars().all(|character| character == sign)
    }

    /// Returns the open block after a line.
    pub(super) fn after(open: Option<Self>, line: &str) -> Option<Self> {
        match open {
            Some(fence) => (!fence.is_closed_by(line)).then_some(fence),
            None => opening(line),
        }
    }
}

/// Returns the block that a line opens.
pub(super) fn opening(line: &str) -> Option<Fence> {
    let line = line.trim();
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let info = line.trim_start_matches(sign);
    let length = line.len() - info.len();
    let is_marker = (3..=MAX_MARKER).contains(&length) && !(sign == '`' && info.contains('`'));
    is_marker.then(|| Fence { marker: sign.to_string().repeat(length), info: info.trim().to_owned() })
}

/// Returns the text with the line breaks of Unix and with short borders of code blocks: a closing line is as long as its opening
/// line, and an info string that is too long becomes the first line of the block.
pub(super) fn normalized(text: &str, max_info: usize, unit: TextUnit) -> String {
    let mut open: Option<Fence> = None;
    let mut out = String::with_capacity(text.len());
    for line in text.replace("\r\n", "\n").split_inclusive('\n') {
        let next = Fence::after(open.clone(), line);
        let line_end = if line.ends_with('\n') { "\n" } else { "" };
        match (&open, &next) {
            (None, Some(fence)) if unit.length(&fence.info) > max_info => {
                out.push_str(&fence.marker);
                out.push('\n');
                out.push_str(&fence.info);
                out.push_str(line_end);
                open = Some(Fence { info: String::new(), ..fence.clone() });
                continue;
            }
            (None, Some(fence)) => {
                out.push_str(fence.reopen().trim_end());
                out.push_str(line_end);
            }
            (Some(fence), None) => {
                out.push_str(&fence.marker);
                out.push_str(line_end);
            }
            _ => out.push_str(line),
        }
        open = next;
    }
    out
}
