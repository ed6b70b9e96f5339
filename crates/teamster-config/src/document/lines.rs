//! Texts as lines: what one edit did, done to another text.

use diffy::{DiffOptions, Line};

/// Larger texts are not compared with one another: that could take long where they have little in common.
const LARGEST: usize = 1 << 20;

/// The text `theirs`, which was made of `from`, with what turns `from` into `to`; `None` where the two edits are not apart.
pub(super) fn three_way(from: &str, to: &str, theirs: &str) -> Option<String> {
    if [from, to, theirs].iter().any(|text| text.len() > LARGEST) {
        return None;
    }
    diffy::merge(from, to, theirs).ok().or_else(|| by_blocks(from, to, theirs))
}

/// The same for edits that touch: each block of lines of `from` that is not in `to` still stands in `theirs`, once.
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

/// The text `new`, which was made of `plain`, with the line ends of `original`, whose plain form `plain` is. Lines that
/// are new get the one of most others.
pub(super) fn with_ends_of(original: &str, plain: &str, new: String) -> String {
    if original == plain {
        return new;
    }
    // All lines in one go, those around a change too.
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

/// The line end that most lines have.
pub(super) fn usual_end(text: &str) -> &'static str {
    let (all, windows) = (text.matches('\n').count(), text.matches("\r\n").count());
    if windows * 2 > all { "\r\n" } else { "\n" }
}
