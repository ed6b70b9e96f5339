//! Warnings of one kind are passed on up to a number, and counted from there on.

use teamster_types::event::{Warning, WarningCode};

/// How many warnings of a code are passed on.
const MAX_OF_A_CODE: u64 = 100;

/// How many warnings there were of each code.
#[derive(Debug, Default)]
pub(super) struct Warnings(Vec<(WarningCode, u64)>);

impl Warnings {
    /// Counts a warning. Whether it is passed on.
    pub(super) fn pass(&mut self, code: &WarningCode) -> bool {
        if let Some((_, count)) = self.0.iter_mut().find(|(known, _)| known == code) {
            *count += 1;
            return *count <= MAX_OF_A_CODE;
        }
        self.0.push((code.clone(), 1));
        true
    }

    /// A warning for each code of which some were not passed on, with their number.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Warning> + use<> {
        let counts = std::mem::take(&mut self.0).into_iter();
        counts.filter_map(|(code, count)| {
            let omitted = count.checked_sub(MAX_OF_A_CODE).filter(|omitted| *omitted > 0)?;
            let text = format!("{omitted} more warnings of this kind were left out");
            Some(Warning::new(code, text).with("omitted", omitted))
        })
    }
}
