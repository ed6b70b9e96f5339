//! How long a run may take, phase by phase, and how much may wait.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RequestError;

/// Limits of one run. A limit of zero is off; a grace or drain period of zero is none. What is longer than ten years is
/// ten years.
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
    /// How long a permission request or a question of the agent waits for its answer; then it is denied. Default 5 minutes.
    #[serde(rename = "answerMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub answer: Duration,
    /// From a polite request to end (an interrupt, SIGTERM) to the next harder one. Default 1.5 seconds.
    #[serde(rename = "graceMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub grace: Duration,
    /// How long output is still read after the CLI's exit while another process holds its pipe. Default 0.5 seconds.
    #[serde(rename = "drainMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub drain: Duration,
    /// Bytes of one line of output; a longer line is skipped with a warning. Default 64 MiB. Not zero.
    pub max_line_bytes: usize,
    /// Bytes of diagnostics that are kept. Default 64 KiB; with zero none are.
    pub stderr_bytes: usize,
    /// Bytes of events that wait in memory for a consumer that is slow, roughly. Default 4 MiB; with zero one event does.
    pub backlog_bytes: usize,
    /// Bytes of events that wait on disk when memory is used up. When this is used up too, no more is read, and the agent
    /// waits. Default 1 GiB; with zero nothing waits on disk.
    pub backlog_disk_bytes: u64,
}

/// Whatever is longer, nobody waits for; and it can be added to any time of day.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

impl Limits {
    /// The same, with no duration so long that it cannot be reckoned with.
    #[must_use]
    pub fn capped(mut self) -> Self {
        let durations = [
            &mut self.startup,
            &mut self.silence,
            &mut self.tool,
            &mut self.after_result,
            &mut self.deadline,
            &mut self.answer,
            &mut self.grace,
            &mut self.drain,
        ];
        for duration in durations {
            *duration = LONGEST.min(*duration);
        }
        self
    }

    pub(super) fn validate(&self) -> Result<(), RequestError> {
        if self.max_line_bytes == 0 {
            return Err(RequestError::Zero { field: "max_line_bytes", why: "every line would be too long" });
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            startup: Duration::from_mins(2),
            silence: Duration::from_mins(5),
            tool: Duration::from_mins(30),
            after_result: Duration::from_secs(15),
            deadline: Duration::ZERO,
            answer: Duration::from_mins(5),
            grace: Duration::from_millis(1500),
            drain: Duration::from_millis(500),
            max_line_bytes: 64 << 20,
            stderr_bytes: 64 << 10,
            backlog_bytes: 4 << 20,
            backlog_disk_bytes: 1 << 30,
        }
    }
}

pub(super) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in crate::request) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(in crate::request) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_duration_is_too_long_to_be_reckoned_with_and_usual_ones_stay() {
        let usual = Limits::default();
        assert_eq!(usual.clone().capped(), usual);
        let mut endless = usual;
        endless.deadline = Duration::MAX;
        endless.grace = Duration::MAX;
        let capped = endless.capped();
        assert_eq!((capped.deadline, capped.grace), (LONGEST, LONGEST));
    }
}
