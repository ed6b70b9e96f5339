//! Lines that tell of circumstances: they become warnings.

use crate::agent::failure::plain_lines;
use teamster_types::event::{Warning, WarningCode};

/// An `error` line that is progress: the connection to the vendor broke, and Codex tries again.
pub(super) fn reconnecting(message: &str) -> Option<Warning> {
    let rest = message.strip_prefix("Reconnecting...")?.trim_start();
    let warning = Warning::new(WarningCode::Retrying, message);
    // "1/5 (cause)", or "waiting for network (cause)"
    let counts = rest.split(' ').next().and_then(|counts| counts.split_once('/'));
    let counts = counts.and_then(|(attempt, max)| Some((attempt.parse::<u64>().ok()?, max.parse::<u64>().ok()?)));
    Some(match counts {
        Some((attempt, max)) => warning.with("attempt", attempt).with("max", max),
        None => warning,
    })
}

/// An item of type `error`: never fatal, whatever it is called.
pub(super) fn of_item(message: &str) -> Warning {
    let code = if message.contains("unrecognized configuration setting") && message.contains("session-flags:") {
        // What a flag of this run set does not exist in this version.
        WarningCode::OptionIgnored
    } else {
        WarningCode::Notice
    };
    Warning::new(code, message)
}

/// A note about a program that neither form needs, which `exec` keeps to itself.
const BUBBLEWRAP: &str = "Codex could not find bubblewrap on PATH.";

/// Whether a notice of the app-server's is none elsewhere.
pub(super) fn is_told_by_no_other_form(message: &str) -> bool {
    message.starts_with(BUBBLEWRAP)
}

/// What the app-server writes of itself, without its colours.
pub(super) fn shown(stderr: &str) -> String {
    let mut lines = plain_lines(stderr);
    lines.retain(|line| !line.contains(BUBBLEWRAP));
    lines.join("\n")
}
