//! What a run said, compared with what it must have said.

use anyhow::{Result, bail, ensure};
use teamster::event::{ErrorCode, Event, RunResult};
use teamster_testkit::check::check;

use crate::row::{Column, End};

/// The stream keeps its rules, exactly one `done` among them; what it came to.
pub(crate) fn result_of(events: &[Event]) -> Result<&RunResult> {
    if let Err(violations) = check(events) {
        bail!("the stream breaks its rules: {violations:?}");
    }
    let dones = events.iter().filter(|event| matches!(event, Event::Done(_))).count();
    ensure!(dones == 1, "{dones} times done");
    match events.last() {
        Some(Event::Done(done)) => Ok(&done.result),
        other => bail!("the last event is {other:?}"),
    }
}

/// It ended as expected.
pub(crate) fn compare(result: &RunResult, expected: End) -> Result<()> {
    let code = result.error_code.as_ref().map(ErrorCode::as_str);
    let fits = match expected {
        End::Success => code.is_none(),
        End::Error(wanted) => code == Some(wanted),
        End::Either(wanted) => code.is_none_or(|code| code == wanted),
        End::Unread => false,
    };
    ensure!(fits && result.is_error == code.is_some(), "it ended with {code:?} instead of {expected:?}");
    Ok(())
}

/// Bytes of what the CLI had said that did not arrive. The fake agent's words are known to the last; a real CLI may add
/// some after the fault.
pub(crate) fn lost(column: Column, said: &str, text: &str) -> usize {
    let whole = match column {
        Column::Fake => text == said,
        Column::Real(_) => text.contains(said),
    };
    if whole {
        return 0;
    }
    let common = text.bytes().zip(said.bytes()).take_while(|(one, other)| one == other).count();
    said.len().saturating_sub(common).max(1)
}

/// The beginning of a text that may be long.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(600).collect();
    if short.len() < text.len() { format!("{short}… ({} bytes)", text.len()) } else { short }
}
