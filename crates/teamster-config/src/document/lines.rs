//! Line-based edits: applies the changes between two texts to a third.

use diffy::{DiffOptions, Line};

/// Larger texts are not compared. A comparison takes long if they have little in common.
const LARGEST: usize = 1 << 20;

/// Applies the changes from `from` to `to` to `theirs`, which was made from `from`. Returns `None` if the two edits overlap.
pub(super) fn three_way(from: &str, to: &str, theirs: &str) -> Option<String> {
    if [from, to, theirs].iter().any(|text| text.len() > LARGEST) {
        return None;
    }
    diffy::merge(from, to, theirs).ok().or_else(|| by_blocks(from, to, theirs))
}

/// Does the same for edits that touch: each block of lines of `from` that is not in `to` must occur once in `theirs`.
fn by_blocks(from: &str, to: &str, theirs: &str) -> Option<String> {
    let patch = DiffOptions::new().set_context_len(0).create_patch(from, to);
    let mut lines: Vec<&str> = theirs.split_inclusive('\n').collect();
    for hunk in patch.hunks() {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for line in hunk.lines() {
            match line {
                Line::Context(line) => {
                    old.push(*line);
                    new.push(*line);
                }
                Line::Delete(line) => old.push(*line),
                Line::Insert(line) => new.push(*line),
            }
        }
        let mut places = (!old.is_empty()).then(|| lines.windows(old.len()).enumerate())?;
        let (start, _) = places.find(|(_, window)| *window == old)?;
        if places.any(|(_, window)| window == old) {
            return None;
        }
        lines.splice(start..start + old.len(), new);
    }
    Some(lines.concat())
}

/// Returns `new`, which was made from `plain`, with the line ends of `original`. `plain` is `original` with plain line ends.
/// New lines get the most frequent line end.
pub(super) fn with_ends_of(original: &str, plain: &str, new: String) -> String {
    if original == plain {
        return new;
    }
    // The comparison covers all lines, so that the lines around a change keep their ends.
    let all = plain.lines().count() + new.lines().count();
    let mut options = DiffOptions::new();
    let patch = options.set_context_len(all).create_patch(plain, &new);
    let [hunk] = patch.hunks() else { return original.to_owned() };
    let usual = usual_end(original);
    let mut lines = original.split_inclusive('\n');
    let mut text = String::with_capacity(new.len() + original.len() - plain.len());
    for line in hunk.lines() {
        match line {
            Line::Context(_) => text.push_str(lines.next().unwrap_or_default()),
            Line::Delete(_) => _ = lines.next(),
            Line::Insert(line) => {
                let stripped = line.strip_suffix('\n');
                text.push_str(stripped.unwrap_or(line));
                text.push_str(stripped.map_or("", |_| usual));
            }
        }
    }
    text
}

/// Returns the most frequent line end.
pub(super) fn usual_end(text: &str) -> &'static str {
    let (all, windows) = (text.matches('\n').count(), text.matches("\r\n").count());
    if windows * 2 > all { "\r\n" } else { "\n" }
}
