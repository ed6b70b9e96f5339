//! What the file of a project may set.
//!
//! Whoever can write to a project's directory can write its file. So the file can neither give the agent permissions, run
//! programs, read other files, nor select where data is sent. A setting without a rule is refused.

use std::time::Duration;

use super::{Assignment, Setting};

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

/// Checks whether the file of a project may set these values.
///
/// # Errors
/// Returns why it may not.
pub(crate) fn permits(setting: &Setting, values: &[String]) -> Result<(), String> {
    let reason = "it could give permissions, run programs or send data elsewhere";
    match setting.project {
        ProjectRule::Nothing => Err(format!("a project's file cannot set {}: {reason}", setting.key)),
        ProjectRule::Only(allowed) if values.iter().any(|value| value != allowed) => {
            Err(format!("a project's file can set {} to {allowed} only", setting.key))
        }
        ProjectRule::Model if values.iter().any(|value| value.contains('/')) => {
            Err("a project's file cannot select the provider of the model: use a name without a slash".to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns the project's values where they restrict the user's own ones, and `None` where the user's ones apply.
pub(super) fn restricted(setting: &Setting, project: Assignment, own: Option<&Assignment>) -> Option<Assignment> {
    let own_values = own.map(|own| own.values.as_slice()).unwrap_or_default();
    match setting.project {
        ProjectRule::Added => {
            let values = own_values.iter().cloned().chain(project.values).collect();
            Some(Assignment { values, ..project })
        }
        ProjectRule::Lower => {
            let built_in = || setting.arg.get_default_values().first().and_then(|value| value.to_str());
            let limit = own_values.first().map(String::as_str).or_else(built_in).and_then(size);
            let size = project.values.first().and_then(|value| size(value));
            let is_lower = match (size, limit) {
                (Some(size), Some(limit)) => size < limit,
                (Some(_), None) => true,
                (None, _) => false,
            };
            is_lower.then_some(project)
        }
        _ => Some(project),
    }
}

/// Returns the size of a limit: a permission mode, a number or a duration (0 means none).
fn size(value: &str) -> Option<f64> {
    const MODES: [(&str, f64); 4] = [("read-only", 0.0), ("ask", 1.0), ("edit", 2.0), ("full", 3.0)];
    let mode = MODES.iter().find(|(name, _)| *name == value).map(|(_, size)| *size);
    let duration = || {
        humantime::parse_duration(value).ok().map(|duration| match duration {
            Duration::ZERO => f64::INFINITY,
            duration => duration.as_secs_f64(),
        })
    };
    mode.or_else(|| value.parse().ok()).or_else(duration)
}
