//! What an agent may do.

use serde::{Deserialize, Serialize};

/// What the agent may do: a mode, and rules for tools that take precedence over it.
///
/// ```
/// use teamster_types::request::{PermissionMode, Permissions};
///
/// let permissions = Permissions::new(PermissionMode::Edit)
///     .with_allow(["Bash(git diff:*)"])
///     .with_deny(["Bash(git push:*)"]);
/// assert_eq!(permissions.mode, PermissionMode::Edit);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Permissions {
    /// The mode.
    pub mode: PermissionMode,
    /// Rules for tools that are allowed without a permission request, with the agent's own tool names (`Bash(git diff:*)`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Rules for tools that are denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl Permissions {
    /// Creates permissions of this mode, without rules.
    #[must_use]
    pub fn new(mode: PermissionMode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Adds rules for tools that are allowed without a permission request.
    #[must_use]
    pub fn with_allow(mut self, rules: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allow.extend(rules.into_iter().map(Into::into));
        self
    }

    /// Adds rules for tools that are denied.
    #[must_use]
    pub fn with_deny(mut self, rules: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.deny.extend(rules.into_iter().map(Into::into));
        self
    }
}

/// The permission mode, with the same meaning for every agent. Exhaustive, because an agent must handle every value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// The agent may only read.
    ReadOnly,
    /// Changes need permission. A run cannot ask for it, so they are denied there.
    #[default]
    Ask,
    /// File edits are allowed. Other changes need permission.
    Edit,
    /// Everything is allowed. It is never the default.
    Full,
}
