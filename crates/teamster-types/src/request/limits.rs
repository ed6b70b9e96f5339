//! Limits on the time of each phase of a run, and on buffered data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RequestError;

/// The limits of a run. A time limit of zero is disabled; a grace or drain period of zero is skipped. Durations are capped at
/// ten years.
///
/// In JSON, durations are in whole milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// The time from the process's start to its first output. Default: 5 minutes, since a CLI may wait for its MCP servers.
    #[serde(rename = "startupMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub startup: Duration,
    /// The time without output while no tool runs. Default: 5 minutes.
    #[serde(rename = "silenceMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub silence: Duration,
    /// The time without output while a tool runs, such as a build. Default: 30 minutes.
    #[serde(rename = "toolMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub tool: Duration,
    /// The time from the final result to the process's exit. Default: 15 seconds.
    #[serde(rename = "afterResultMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub after_result: Duration,
    /// The time of the whole run. Disabled by default.
    #[serde(rename = "deadlineMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub deadline: Duration,
    /// The time in which a permission request or a question must be answered; then it is denied. Default: 5 minutes.
    #[serde(rename = "answerMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub answer: Duration,
    /// The time between an interrupt, SIGTERM and SIGKILL. Default: 1.5 seconds.
    #[serde(rename = "graceMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub grace: Duration,
    /// The time in which output is read after the CLI's exit while another process holds its pipe open. Default: 0.5 seconds.
    #[serde(rename = "drainMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub drain: Duration,
    /// The maximum bytes of an output line; a longer line is skipped with a warning. Default: 64 MiB. Must not be zero.
    pub max_line_bytes: usize,
    /// The maximum bytes of stored standard error. Default: 64 KiB. Zero stores nothing.
    pub stderr_bytes: usize,
    /// The approximate maximum bytes of events in memory that wait for a slow consumer. Default: 4 MiB. With zero, one event
    /// waits in memory.
    pub backlog_bytes: usize,
    /// The maximum bytes of events on disk once the memory limit is reached. Beyond it no output is read, so the agent waits.
    /// Default: 1 GiB. With zero, no event waits on disk.
    pub backlog_disk_bytes: u64,
}

/// The longest duration. It can be added to any time without overflow.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

impl Limits {
    /// Returns the limits with every duration capped at ten years.
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
            startup: Duration::from_mins(5),
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
    fn durations_are_capped_at_ten_years() {
        let usual = Limits::default();
        assert_eq!(usual.clone().capped(), usual);
        let mut endless = usual;
        endless.deadline = Duration::MAX;
        endless.grace = Duration::MAX;
        let capped = endless.capped();
        assert_eq!((capped.deadline, capped.grace), (LONGEST, LONGEST));
    }
}
