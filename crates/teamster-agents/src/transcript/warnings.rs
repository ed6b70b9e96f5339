//! Limits the number of warnings with the same code. Further ones are only counted.

use serde_json::Value;
use teamster_types::event::{Warning, WarningCode};

/// The maximum number of warnings with the same code that are emitted.
const MAX_OF_A_CODE: u64 = 100;

/// The number of warnings of each code.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    counts: Vec<(WarningCode, u64)>,
    requested_compaction: bool,
}

impl Warnings {
    /// Counts a warning. Returns whether it is emitted.
    pub(super) fn pass(&mut self, warning: &Warning) -> bool {
        let code = &warning.code;
        let trigger = warning.data.as_ref().and_then(|data| data.get("trigger")).and_then(Value::as_str);
        self.requested_compaction |= *code == WarningCode::Compacted && trigger == Some("manual");
        if let Some((_, count)) = self.counts.iter_mut().find(|(known, _)| known == code) {
            *count += 1;
            return *count <= MAX_OF_A_CODE;
        }
        self.counts.push((code.clone(), 1));
        true
    }

    /// Whether the agent compacted the conversation because the prompt requested it. Such a run needs no answer.
    pub(super) fn has_requested_compaction(&self) -> bool {
        self.requested_compaction
    }

    /// Returns a warning for each code with warnings that were not emitted, with their number.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Warning> + use<> {
        let counts = std::mem::take(&mut self.counts).into_iter();
        counts.filter_map(|(code, count)| {
            let omitted = count.checked_sub(MAX_OF_A_CODE).filter(|omitted| *omitted > 0)?;
            let text = format!("{omitted} more warnings with this code were omitted");
            Some(Warning::new(code, text).with("omitted", omitted))
        })
    }
}
