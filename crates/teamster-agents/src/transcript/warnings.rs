//! Limits the number of warnings with the same code. Further ones are only counted.

use teamster_types::event::{Warning, WarningCode};

/// The maximum number of warnings with the same code that are emitted.
const MAX_OF_A_CODE: u64 = 100;

/// The number of warnings of each code.
#[derive(Debug, Default)]
pub(super) struct Warnings(Vec<(WarningCode, u64)>);

impl Warnings {
    /// Counts a warning. Returns whether it is emitted.
    pub(super) fn pass(&mut self, code: &WarningCode) -> bool {
        if let Some((_, count)) = self.0.iter_mut().find(|(known, _)| known == code) {
            *count += 1;
            return *count <= MAX_OF_A_CODE;
        }
        self.0.push((code.clone(), 1));
        true
    }

    /// Returns whether there was a warning with this code.
    pub(super) fn contains(&self, code: &WarningCode) -> bool {
        self.0.iter().any(|(known, _)| known == code)
    }

    /// Returns a warning for each code with warnings that were not emitted, with their number.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Warning> + use<> {
        let counts = std::mem::take(&mut self.0).into_iter();
        counts.filter_map(|(code, count)| {
            let omitted = count.checked_sub(MAX_OF_A_CODE).filter(|omitted| *omitted > 0)?;
            let text = format!("{omitted} more warnings with this code were omitted");
            Some(Warning::new(code, text).with("omitted", omitted))
        })
    }
}
