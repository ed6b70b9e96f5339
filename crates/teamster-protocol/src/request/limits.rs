//! How long a run may take, phase by phase, and how much may wait.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits of one run. A limit of zero is off; a grace or drain period of zero is none.
///
/// In JSON durations are whole milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// From the start of the process to its first sign of life. Default 2 minutes: a CLI may wait for its MCP servers.
    #[serde(rename = "startupMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub startup: Duration,
    /// Silence while no tool runs. Default 5 minutes.
    #[serde(rename = "silenceMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub silence: Duration,
    /// Silence while a tool runs: builds and test suites say nothing for long. Default 30 minutes.
    #[serde(rename = "toolMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub tool: Duration,
    /// From the final result to the exit of the process. Default 15 seconds.
    #[serde(rename = "afterResultMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub after_result: Duration,
    /// The whole run. Off by default.
    #[serde(rename = "deadlineMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub deadline: Duration,
    /// From a polite request to end (an interrupt, SIGTERM) to the next harder one. Default 1.5 seconds.
    #[serde(rename = "graceMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub grace: Duration,
    /// How long output is still read after the CLI's exit while another process holds its pipe. Default 0.5 seconds.
    #[serde(rename = "drainMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub drain: Duration,
    /// Bytes of one line of output; a longer line is skipped with a warning. Default 64 MiB.
    pub max_line_bytes: usize,
    /// Bytes of diagnostics that are kept. Default 64 KiB.
    pub stderr_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            startup: Duration::from_mins(2),
            silence: Duration::from_mins(5),
            tool: Duration::from_mins(30),
            after_result: Duration::from_secs(15),
            deadline: Duration::ZERO,
            grace: Duration::from_millis(1500),
            drain: Duration::from_millis(500),
            max_line_bytes: 64 << 20,
            stderr_bytes: 64 << 10,
        }
    }
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
