//! The types of single values.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use teamster::request::{PermissionMode, ProjectTrust};

use crate::config::Interrupted;

/// A duration, written like `90s`, `10m` or `1h 30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Time;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a duration, such as \"90s\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                let invalid = |error| E::custom(format!("invalid duration {text:?}: {error}; write it like \"90s\""));
                humantime::parse_duration(text).map(Time).map_err(invalid)
            }
        }

        deserializer.deserialize_str(Text)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A duration, such as \"90s\", \"10m\" or \"1h 30m\"",
            "examples": ["90s", "10m"],
        })
    }
}

/// What an agent may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionName {
    /// Only read.
    ReadOnly,
    /// Changes need permission.
    Ask,
    /// File edits are allowed.
    Edit,
    /// Everything is allowed.
    Full,
}

impl PermissionName {
    /// Returns the mode of a request.
    pub const fn mode(self) -> PermissionMode {
        match self {
            Self::ReadOnly => PermissionMode::ReadOnly,
            Self::Ask => PermissionMode::Ask,
            Self::Edit => PermissionMode::Edit,
            Self::Full => PermissionMode::Full,
        }
    }
}

/// Whether a working directory is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrustName {
    /// The configuration that it has for agents is used.
    Trusted,
    /// No such configuration is used.
    Untrusted,
}

impl TrustName {
    pub(super) const fn value(self) -> ProjectTrust {
        match self {
            Self::Trusted => ProjectTrust::Trusted,
            Self::Untrusted => ProjectTrust::Untrusted,
        }
    }
}

/// Another gateway whose deployments move to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CompatName {
    /// Aetheel, and gateways that run Claude Code with all permissions for the members of a Discord server.
    Aetheel,
}

/// What happens to a turn that a crash has interrupted after it had an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterruptedName {
    /// The interruption is reported in the chat.
    #[serde(rename = "tell")]
    Report,
    /// The agent is asked to continue.
    Resume,
}

impl InterruptedName {
    pub(super) const fn value(self) -> Interrupted {
        match self {
            Self::Report => Interrupted::Report,
            Self::Resume => Interrupted::Resume,
        }
    }
}

/// What a gateway process does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything.
    #[default]
    All,
    /// Serves the API.
    Api,
    /// Runs turns.
    Worker,
    /// Receives and delivers messages.
    Channels,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::All, Self::Api, Self::Worker, Self::Channels];

    /// Returns the name in files and options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Channels => "channels",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
