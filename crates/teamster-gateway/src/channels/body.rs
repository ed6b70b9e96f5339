//! The document of a delivery in the store.

use serde::{Deserialize, Serialize};
use teamster_channel::Content;
use teamster_store::Decision;

/// The document of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body {
    /// What to show.
    pub(super) content: Content,
    /// The key of an earlier delivery of the turn. Where the service can edit, this delivery replaces its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaces: Option<String>,
    /// The meaning of each button of a prompt, in the order of the buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) meanings: Vec<Meaning>,
}

/// The meaning of a button. The button's token is bound to it by its position in the stored document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meaning {
    pub(super) decision: StoredDecision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

/// A decision, as the document names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredDecision {
    Allow,
    AllowAlways,
    Deny,
}

impl Body {
    /// Shows a content and nothing else.
    pub(super) const fn of(content: Content) -> Self {
        Self { content, replaces: None, meanings: Vec::new() }
    }
}

impl From<Decision> for StoredDecision {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow,
            Decision::AllowAlways => Self::AllowAlways,
            Decision::Deny => Self::Deny,
        }
    }
}

impl From<StoredDecision> for Decision {
    fn from(decision: StoredDecision) -> Self {
        match decision {
            StoredDecision::Allow => Self::Allow,
            StoredDecision::AllowAlways => Self::AllowAlways,
            StoredDecision::Deny => Self::Deny,
        }
    }
}
