//! Notices of Codex, which become warnings.

use crate::agent::failure::plain_lines;
use teamster_types::event::{Warning, WarningCode};

/// Returns a warning for an `error` line that reports a reconnect. The connection to the vendor broke, and Codex retries.
pub(super) fn reconnecting(message: &str) -> Option<Warning> {
    let rest = message.strip_prefix("Reconnecting...")?.trim_start();
    let warning = Warning::new(WarningCode::Retrying, message);
    // "1/5 (cause)", or "waiting for network (cause)".
    let counts = rest.split(' ').next().and_then(|counts| counts.split_once('/'));
    let counts = counts.and_then(|(attempt, max)| Some((attempt.parse::<u64>().ok()?, max.parse::<u64>().ok()?)));
    Some(match counts {
        Some((attempt, max)) => warning.with("attempt", attempt).with("max", max),
        None => warning,
    })
}

/// Returns the warning for an item of type `error`. Such an item is never fatal.
pub(super) fn warning_for(message: &str) -> Warning {
    let code = if message.contains("unrecognized configuration setting") && message.contains("session-flags:") {
        // A flag of this run sets a key that this version does not have.
        WarningCode::OptionIgnored
    } else {
        WarningCode::Notice
    };
    Warning::new(code, message)
}

/// A notice about a program that neither interface needs. `exec` does not print it.
const BUBBLEWRAP: &str = "Codex could not find bubblewrap on PATH.";

/// Returns whether only the app-server prints this notice.
pub(super) fn is_app_server_only(message: &str) -> bool {
    message.starts_with(BUBBLEWRAP)
}

/// Returns the app-server's diagnostics without colors.
pub(super) fn visible_stderr(stderr: &str) -> String {
    let mut lines = plain_lines(stderr);
    lines.retain(|line| !line.contains(BUBBLEWRAP));
    lines.join("\n")
}
