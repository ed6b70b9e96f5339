//! A schedule as the store keeps it and the API shows it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A schedule without its id and its conversation. Exactly one of `cron` and `at` is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleBody {
    /// A cron expression: minute, hour, day of month, month, day of week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// One time: in RFC 3339, or without an offset (`2026-03-01T09:00`) in the time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The IANA name of the time zone.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// The text of the message.
    pub text: String,
    /// The author of the message: who has created the schedule.
    pub author: String,
    /// The rule for times at which the gateway was down.
    #[serde(default)]
    pub missed: Missed,
    /// A missed time that is older than this many seconds is skipped.
    #[serde(default = "a_day")]
    pub max_age_seconds: u64,
    /// Whether its author is the owner of a token, and not an author of the chat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_api: bool,
    /// What has created it, for the operator: for example `turn ID` or `token ID`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_by: String,
}

/// How `created_by` starts if the agent has created the schedule, in a turn.
pub(crate) const BY_TURN: &str = "turn ";

impl ScheduleBody {
    /// Returns whether the agent has created it, with its tool.
    pub(crate) fn is_by_agent(&self) -> bool {
        self.created_by.starts_with(BY_TURN)
    }
}

/// The rule for times at which the gateway was down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// It is skipped, and the log of the conversation has an event.
    Skip,
    /// It fires late, unless it is too old. Several missed times fire once.
    #[default]
    Once,
}

/// Upper bounds of schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields, default)]
pub struct ScheduleLimits {
    /// The shortest time between two times of a schedule
    #[serde(with = "crate::duration")]
    #[schemars(with = "crate::config::file::Time")]
    pub min_interval: Duration,
    /// The schedules of a conversation
    pub per_conversation: u32,
}

impl Default for ScheduleLimits {
    fn default() -> Self {
        Self { min_interval: Duration::from_mins(1), per_conversation: 50 }
    }
}

/// Why a schedule is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct ScheduleError {
    /// The field: `cron`, `at`, `timeZone` or `text`.
    pub field: &'static str,
    /// What is wrong, and how to correct it.
    pub problem: String,
}

impl ScheduleError {
    pub(super) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }
}

impl From<ScheduleError> for crate::error::GatewayError {
    fn from(error: ScheduleError) -> Self {
        let ScheduleError { field, problem } = error;
        Self::Invalid { field, problem }
    }
}

fn utc() -> String {
    "UTC".to_owned()
}

const fn a_day() -> u64 {
    24 * 60 * 60
}
