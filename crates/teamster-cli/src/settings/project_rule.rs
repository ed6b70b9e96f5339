//! What the file of a project may set.
//!
//! Anyone who can write to a project's directory can write its file. So the file can neither give the agent permissions, run
//! programs, read other files, nor select where data is sent. A setting without a rule is refused.

/// What the file of a project may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProjectRule {
    /// Any value.
    Any,
    /// A model of the user's own provider: a name with a slash selects another one.
    Model,
    /// This value only: it restricts the agent.
    Only(&'static str),
    /// A lower limit than the user's own one; a higher one has no effect.
    Lower,
    /// Further values. The user's own ones remain.
    Added,
    /// Nothing.
    Nothing,
}

const RULES: [(&str, ProjectRule); 17] = [
    ("append_system_prompt", ProjectRule::Any),
    ("effort", ProjectRule::Any),
    ("model", ProjectRule::Model),
    ("deny_tool", ProjectRule::Added),
    ("permission", ProjectRule::Lower),
    ("max_turns", ProjectRule::Lower),
    ("max_tokens", ProjectRule::Lower),
    ("max_session_tokens", ProjectRule::Lower),
    ("max_budget", ProjectRule::Lower),
    ("max_session_budget", ProjectRule::Lower),
    ("deadline", ProjectRule::Lower),
    ("retries", ProjectRule::Lower),
    ("project_trust", ProjectRule::Only("untrusted")),
    ("prompt_mode", ProjectRule::Only("literal")),
    ("mcp_strict", ProjectRule::Only("true")),
    ("withhold_keys", ProjectRule::Only("true")),
    ("require_process_control", ProjectRule::Only("true")),
];

/// Returns the rule for an option.
pub(super) fn rule_of(id: &str) -> ProjectRule {
    RULES.iter().find(|(name, _)| *name == id).map_or(ProjectRule::Nothing, |(_, rule)| *rule)
}
