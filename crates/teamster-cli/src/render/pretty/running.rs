//! The output of a running tool: its last lines, which the live area shows below the call.

use crate::args::ToolOutput;
use crate::printable::Printable;

/// The number of bytes of an output that are retained.
const MAX_BYTES: usize = 16 << 10;
/// The number of lines that `--tool-output short` shows, and `full`.
const SHORT_LINES: usize = 4;
const FULL_LINES: usize = 16;

/// The end of the output of a running tool.
#[derive(Debug, Default)]
pub(super) struct RunningOutput {
    text: String,
    /// The number of line ends that were dropped.
    dropped: usize,
}

impl RunningOutput {
    /// Adds a part of the output.
    pub(super) fn push(&mut self, part: &str) {
        let part_start = part.ceil_char_boundary(part.len().saturating_sub(MAX_BYTES));
        let (skipped, part) = part.split_at(part_start);
        let excess = (self.text.len() + part.len()).saturating_sub(MAX_BYTES);
        let excess = self.text.ceil_char_boundary(excess.min(self.text.len()));
        self.dropped += line_ends(skipped) + line_ends(self.text.get(..excess).unwrap_or_default());
        self.text.drain(..excess);
        self.text.push_str(part);
    }

    /// Returns the last lines. Earlier ones are counted.
    pub(super) fn lines(&self, shown: ToolOutput, width: usize) -> Vec<Printable> {
        let most = match shown {
            ToolOutput::None => return Vec::new(),
            ToolOutput::Short => SHORT_LINES,
            ToolOutput::Full => FULL_LINES,
        };
        let text = self.text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            return Vec::new();
        }
        let lines: Vec<&str> = text.split('\n').collect();
        let hidden = lines.len().saturating_sub(most);
        let before = self.dropped + hidden;
        let count = (before > 0).then(|| crate::printable::printable!("… {} more lines", before));
        let line = |line: &&str| Printable::prose(&visible(line).replace('\t', "    ")).cut(width);
        count.into_iter().chain(lines.iter().skip(hidden).map(line)).collect()
    }
}

/// Returns what a terminal would show of a line that a progress bar overwrites.
fn visible(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit_once('\r').map_or(line, |(_, last)| last)
}

fn line_ends(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(output: &RunningOutput, shown: ToolOutput) -> String {
        Printable::join(output.lines(shown, 20), "|").as_str().to_owned()
    }

    #[test]
    fn the_last_lines_are_shown_and_the_others_are_counted() {
        let mut output = RunningOutput::default();
        assert_eq!(shown(&output, ToolOutput::Short), "");
        output.push("1\n2\n3\n4\n");
        assert_eq!(shown(&output, ToolOutput::Short), "1|2|3|4");
        output.push("5\n6");
        assert_eq!(shown(&output, ToolOutput::Short), "… 2 more lines|3|4|5|6");
        assert_eq!(shown(&output, ToolOutput::None), "");
        assert_eq!(shown(&output, ToolOutput::Full), "1|2|3|4|5|6");
    }

    #[test]
    fn a_progress_bar_shows_its_last_state() {
        let mut output = RunningOutput::default();
        output.push("10 %\r50 %\r");
        assert_eq!(shown(&output, ToolOutput::Short), "50 %");
        output.push("90 %\r\n\u{1b}[2Jdone");
        assert_eq!(shown(&output, ToolOutput::Short), "90 %|⟦ESC⟧[2Jdone");
    }

    proptest! {
        #[test]
        fn the_memory_is_bounded_and_the_shown_lines_do_not_depend_on_how_the_output_is_split(
            text in "[a-zé\n\r]{0,200}", times in 1_usize..300, cut in 0_usize..200,
        ) {
            let (mut whole, mut parts) = (RunningOutput::default(), RunningOutput::default());
            for _ in 0..times {
                whole.push(&text);
                let (first, second) = text.split_at(text.floor_char_boundary(cut));
                parts.push(first);
                parts.push(second);
            }
            prop_assert!(whole.text.len() <= MAX_BYTES && parts.text.len() <= MAX_BYTES);
            prop_assert_eq!(whole.lines(ToolOutput::Short, 20), parts.lines(ToolOutput::Short, 20));
        }
    }
}
