//! Label values. Each label has a bounded number of values: an unknown value becomes `other`.

use std::collections::BTreeSet;

use prometheus_client::encoding::EncodeLabelSet;
use teamster::event::ErrorCode;
use teamster_store::{EndState, HandBackKind};

/// The value of an unknown agent, channel, error code, route or method.
pub(super) const OTHER: &str = "other";

/// The value of a label that does not apply.
const NONE: &str = "none";

/// The channels of every gateway.
const CHANNELS: [&str; 7] = ["http", "web", "webhook", "discord", "telegram", "slack", "schedule"];

/// The codes of failed turns that are the gateway's own.
const GATEWAY_CODES: [&str; 5] = ["PARKED", "INTERRUPTED", "FORBIDDEN", "EVENT_LIMIT", "PERMISSION_TIMEOUT"];

/// The names that may be label values.
#[derive(Debug)]
pub(super) struct KnownNames {
    agents: BTreeSet<String>,
    channels: BTreeSet<String>,
}

impl KnownNames {
    pub(super) fn new(agents: impl IntoIterator<Item = String>, channels: impl IntoIterator<Item = String>) -> Self {
        let channels = channels.into_iter().chain(CHANNELS.map(str::to_owned)).collect();
        Self { agents: agents.into_iter().collect(), channels }
    }

    /// Returns the label value of an agent. `None` is a turn that no worker has started.
    pub(super) fn agent(&self, name: Option<&str>) -> String {
        let Some(name) = name else { return NONE.to_owned() };
        self.agents.get(name).cloned().unwrap_or_else(|| OTHER.to_owned())
    }

    /// Returns the label value of a channel.
    pub(super) fn channel(&self, name: &str) -> String {
        self.channels.get(name).cloned().unwrap_or_else(|| OTHER.to_owned())
    }
}

/// Returns the label value of an error code. Agents and vendors may report codes of their own.
pub(super) fn error_code(code: Option<&str>) -> String {
    let Some(code) = code else { return NONE.to_owned() };
    let is_known = GATEWAY_CODES.contains(&code) || !matches!(ErrorCode::from(code), ErrorCode::Other(_));
    if is_known { code.to_owned() } else { OTHER.to_owned() }
}

pub(super) const fn end_state(state: EndState) -> &'static str {
    match state {
        EndState::Done => "done",
        EndState::Failed => "failed",
        EndState::Aborted => "aborted",
    }
}

pub(super) const fn hand_back(kind: HandBackKind) -> &'static str {
    match kind {
        HandBackKind::Retry(_) => "retry",
        HandBackKind::Pause(_) => "pause",
        HandBackKind::Shutdown => "shutdown",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ChannelLabels {
    pub(super) channel: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct EndLabels {
    pub(super) agent: String,
    pub(super) state: &'static str,
    pub(super) code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabels {
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DeliveryLabels {
    pub(super) channel: String,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OperationLabels {
    pub(super) operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) method: &'static str,
    pub(super) route: String,
    pub(super) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StateLabels {
    pub(super) state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct BuildLabels {
    pub(super) version: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_becomes_other() {
        let names = KnownNames::new(["claude".to_owned()], ["alerts".to_owned()]);
        assert_eq!(names.agent(Some("claude")), "claude");
        assert_eq!(names.agent(Some("x\"} 1")), OTHER);
        assert_eq!(names.agent(None), NONE);
        assert_eq!((names.channel("alerts").as_str(), names.channel("http").as_str()), ("alerts", "http"));
        assert_eq!(names.channel("a".repeat(5000).as_str()), OTHER);
        assert_eq!(error_code(Some("RATE_LIMIT")), "RATE_LIMIT");
        assert_eq!(error_code(Some("PARKED")), "PARKED");
        assert_eq!(error_code(Some("made up by a vendor")), OTHER);
        assert_eq!(error_code(None), NONE);
    }
}
