//! The tables `[serve.delivery]` and `[serve.bots]`.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::Time;
use crate::channels::UnknownOutcome;

/// How answers are sent to channels.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeliveryTable {
    /// Deliveries of a channel that are sent at the same time; in one chat they are sent one by one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<NonZeroU32>,
    /// Attempts after which a delivery is given up, unless its channel has another limit
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<NonZeroU32>,
    /// The delay after the first failed attempt; it doubles with each further one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_delay: Option<Time>,
    /// The longest delay, unless the service requires a longer one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<Time>,
    /// If it is unknown whether a part was sent: repeat it with a mark, or report it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<UnknownName>,
}

/// What the gateway does with a part whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownName {
    /// It is sent again, marked as a possible repeat.
    Repeat,
    /// It is not sent again.
    Report,
}

impl From<UnknownName> for UnknownOutcome {
    fn from(name: UnknownName) -> Self {
        match name {
            UnknownName::Repeat => Self::Repeat,
            UnknownName::Report => Self::Report,
        }
    }
}

/// Messages of programs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BotsTable {
    /// Accept messages of programs
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept: Option<bool>,
    /// Messages of programs that are accepted in a chat after the last message of a person
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_in_a_row: Option<u32>,
}
