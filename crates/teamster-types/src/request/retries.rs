//! Retries of runs that failed with a transient error.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::millis;
use super::{Conversation, OutputMode, RequestError, RunRequest};

/// When a failed run is retried.
///
/// Only `retryable` failures are retried; never a run that the caller ended or whose session was not found. The deadline of
/// [`Limits`](super::Limits) covers all attempts and the waits between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Retries {
    /// The maximum number of retries, at most [`MOST`](Self::MOST). Default: 0.
    pub max: u32,
    /// The wait before the first retry. Default: 5 seconds; at most [`LONGEST_WAIT`](Self::LONGEST_WAIT). Each further wait is
    /// twice as long, up to that bound. Up to the same time is added at random (jitter), so that runs that failed together
    /// are not retried together.
    #[serde(rename = "baseMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub base: Duration,
    /// Which effects of a failed attempt do not prevent a retry.
    pub policy: RetryPolicy,
}

/// Which effects of a failed attempt do not prevent a retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RetryPolicy {
    /// None: retry only if no tool ran and no resumed session can contain the prompt.
    #[default]
    Safe,
    /// The prompt: a resumed session may contain it already, and then contains it twice.
    MayRepeatPrompt,
    /// Tools and the prompt: tools may have had any effect and may run again.
    MayRepeatTools,
}

impl Retries {
    /// The highest allowed number of retries.
    pub const MOST: u32 = 100;

    /// The longest wait between two attempts, without jitter and without a vendor's limit.
    pub const LONGEST_WAIT: Duration = Duration::from_mins(1);

    /// The longest wait for a vendor's limit to end, if the agent reports the time. If the limit lasts longer, the run fails.
    pub const LONGEST_LIMIT: Duration = Duration::from_mins(10);

    pub(super) fn validate(&self, request: &RunRequest) -> Result<(), RequestError> {
        if self.max > Self::MOST {
            return Err(RequestError::TooMuch { field: "retries.max", most: Self::MOST.to_string() });
        }
        if self.base > Self::LONGEST_WAIT {
            let most = format!("{} ms", Self::LONGEST_WAIT.as_millis());
            return Err(RequestError::TooMuch { field: "retries.base", most });
        }
        let blind = request.output == OutputMode::Batch && self.policy < RetryPolicy::MayRepeatTools;
        if self.max > 0 && blind {
            return Err(RequestError::Contradiction {
                first: "retries",
                second: "batch output",
                why: "batch output does not show whether a tool has run; permit retries after tool calls",
            });
        }
        Ok(())
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self { max: 0, base: Duration::from_secs(5), policy: RetryPolicy::Safe }
    }
}

impl Conversation {
    /// Returns whether the run continues an existing session. A failed attempt may have added its prompt to it.
    pub fn continues_session(&self) -> bool {
        // The fork of a failed attempt is the newest session.
        matches!(self, Self::Resume(_) | Self::Continue | Self::ForkNewest)
    }
}
