//! How often a run that failed in passing is started again, and when it is not.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::millis;
use super::{Conversation, OutputMode, RequestError, RunRequest};

/// When a run that failed is started again.
///
/// Only failures that are `retryable` are, never a run that the caller ended, and never one whose session cannot be found.
/// The deadline of [`Limits`](super::Limits) bounds all attempts and the waits between them together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Retries {
    /// How often at most, up to [`MOST`](Self::MOST). Default 0: never.
    pub max: u32,
    /// The wait before the first retry: 5 seconds by default, at most [`LONGEST_WAIT`](Self::LONGEST_WAIT). Each further
    /// wait is twice as long, up to that bound. As much again, at most, is added by chance, so that many runs that failed
    /// together do not come back together.
    #[serde(rename = "baseMs", with = "millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub base: Duration,
    /// What of a failed attempt may stand when the run is started again.
    pub even_after: EvenAfter,
}

/// What of a failed attempt may stand when the run is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum EvenAfter {
    /// Nothing: no tool has run, and no session that the run goes on with can hold the prompt.
    #[default]
    Nothing,
    /// The prompt: a resumed session may hold it already, and then holds it twice.
    Prompt,
    /// Tools: they may have changed anything, and may run again. The prompt too.
    Tools,
}

impl Retries {
    /// The most retries that can be asked for.
    pub const MOST: u32 = 100;

    /// The longest wait between two attempts, without what chance adds and without a vendor's limit.
    pub const LONGEST_WAIT: Duration = Duration::from_mins(1);

    /// How long a run waits for a vendor's limit to end, where the agent tells when it does. A limit that lasts longer is
    /// not waited for: the run fails.
    pub const LONGEST_LIMIT: Duration = Duration::from_mins(10);

    pub(super) fn validate(&self, request: &RunRequest) -> Result<(), RequestError> {
        if self.max > Self::MOST {
            return Err(RequestError::TooMuch { field: "retries.max", most: Self::MOST.to_string() });
        }
        if self.base > Self::LONGEST_WAIT {
            let most = format!("{} ms", Self::LONGEST_WAIT.as_millis());
            return Err(RequestError::TooMuch { field: "retries.base", most });
        }
        let blind = request.output == OutputMode::Batch && self.even_after < EvenAfter::Tools;
        if self.max > 0 && blind {
            return Err(RequestError::Contradiction {
                first: "retries",
                second: "batch output",
                why: "it does not tell whether a tool has run; ask for retries even after tools",
            });
        }
        Ok(())
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self { max: 0, base: Duration::from_secs(5), even_after: EvenAfter::Nothing }
    }
}

impl Conversation {
    /// Whether a run adds to a session that was there before it: an attempt that failed may have left its prompt there.
    pub fn goes_on(&self) -> bool {
        matches!(self, Self::Resume(_) | Self::Continue)
    }
}
