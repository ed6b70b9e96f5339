//! What the fake CLI does in a turn. It is read from a file beside the program, so that it does not depend on what a host
//! passes on: `claude.json` for the program `claude`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde::{Deserialize, Serialize};

/// What the fake CLI does in a turn, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The protocol: `claude`, `codex` (by its arguments `exec` or `app-server`) or `acp`.
    pub agent: String,
    /// Child processes that exit when their standard input ends.
    pub children: u64,
    /// A child process keeps standard output open for this many seconds.
    pub hold_stdout_s: u64,
    /// Tool calls.
    pub tools: u64,
    /// The bytes of each tool result.
    pub tool_bytes: u64,
    /// All tool calls are open before the first has a result.
    pub tools_overlap: bool,
    /// Text deltas.
    pub deltas: u64,
    /// The bytes of each delta's text; 0 for [`SHORT`].
    pub text_bytes: usize,
    /// Deltas a second, each with the time of its write as text; 0 for as fast as possible.
    pub rate: u64,
    /// The turn does not end by itself.
    pub wait: bool,
}

/// The text of a delta.
pub const SHORT: &str = "some words ";

/// The text of the last delta of a turn that does not end by itself.
pub const READY: &str = "ready";

impl Scenario {
    /// Reads the scenario of this program.
    ///
    /// # Errors
    /// The file is missing or invalid.
    pub fn of_this_program() -> io::Result<Self> {
        let text = fs::read_to_string(env::current_exe()?.with_extension("json"))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Returns the text of a delta.
    #[must_use]
    pub fn text(&self) -> String {
        match self.text_bytes {
            0 => SHORT.to_owned(),
            bytes => SHORT.chars().cycle().take(bytes).collect(),
        }
    }
}

/// Returns the file in which the fake CLI `program` writes the time of its exit.
#[must_use]
pub fn exit_file(program: &Path) -> PathBuf {
    program.with_extension("exit")
}

/// Returns the file in which the fake CLI `program` writes the time at which its `main` began.
#[must_use]
pub fn main_file(program: &Path) -> PathBuf {
    program.with_extension("main")
}

/// Returns the time at which the fake CLI `program` exited last, by the monotonic clock in nanoseconds.
#[must_use]
pub fn exit_ns(program: &Path) -> Option<u64> {
    time_in(&exit_file(program))
}

/// Returns the time at which `main` of the fake CLI `program` began, in the last process that has exited.
#[must_use]
pub fn main_ns(program: &Path) -> Option<u64> {
    time_in(&main_file(program))
}

fn time_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_needs_only_what_differs_from_nothing() {
        let scenario: Scenario = serde_json::from_str(r#"{"agent":"claude","deltas":3,"text_bytes":13}"#).unwrap();
        assert_eq!((scenario.deltas, scenario.rate, scenario.text().as_str()), (3, 0, "some words so"));
        assert!(serde_json::from_str::<Scenario>(r#"{"delta":3}"#).is_err());
    }
}
