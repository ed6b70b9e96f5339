//! Compares the outcome of a run with the expected one.

use anyhow::{Result, bail, ensure};
use teamster::event::{ErrorCode, Event, RunResult};
use teamster_testkit::check::check;

use crate::row::{Column, End};

/// Checks the rules of the stream, and that there is exactly one `done`. Returns its result.
pub(crate) fn result_of(events: &[Event]) -> Result<&RunResult> {
    if let Err(violations) = check(events) {
        bail!("the stream violates its rules: {violations:?}");
    }
    let dones = events.iter().filter(|event| matches!(event, Event::Done(_))).count();
    ensure!(dones == 1, "{dones} `done` events");
    match events.last() {
        Some(Event::Done(done)) => Ok(&done.result),
        other => bail!("the last event is {other:?}"),
    }
}

/// Checks that the run ended as expected.
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

/// Returns the number of bytes of the CLI's text that were lost. The whole text of the fake agent is known; a real CLI may
/// add text after the fault.
pub(crate) fn lost(column: Column, expected: &str, text: &str) -> usize {
    let whole = match column {
        Column::Fake => text == expected,
        Column::Real(_) => text.contains(expected),
    };
    if whole {
        return 0;
    }
    let common = text.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
    expected.len().saturating_sub(common).max(1)
}

/// Returns the start of a text that may be long.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(600).collect();
    if short.len() < text.len() { format!("{short}… ({} bytes)", text.len()) } else { short }
}
