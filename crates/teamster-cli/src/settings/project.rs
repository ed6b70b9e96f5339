//! Applies the rules for the file of a project.

use std::time::Duration;

use super::assignment::Assignment;
use super::project_rule::ProjectRule;
use super::table::Setting;

/// Checks whether the file of a project may set these values.
///
/// # Errors
/// Returns why it may not.
pub(crate) fn permits(setting: &Setting, values: &[String]) -> Result<(), String> {
    let reason = "it could give permissions, run programs or send data elsewhere";
    match setting.project {
        ProjectRule::Nothing => Err(format!("a project's file cannot set it: {reason}")),
        ProjectRule::Only(allowed) if values.iter().any(|value| value != allowed) => {
            Err(format!("a project's file can set it to {allowed} only"))
        }
        ProjectRule::Model if values.iter().any(|value| value.contains('/')) => {
            Err("a project's file cannot select the model's provider: use a name without a slash".to_owned())
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
            let size = |value: &str| if setting.takes_duration() { duration(value) } else { size(value) };
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

/// Returns the size of a limit: a permission mode or a number.
fn size(value: &str) -> Option<f64> {
    const MODES: [(&str, f64); 4] = [("read-only", 0.0), ("ask", 1.0), ("edit", 2.0), ("full", 3.0)];
    let mode = MODES.iter().find(|(name, _)| *name == value).map(|(_, size)| *size);
    mode.or_else(|| value.parse().ok())
}

/// Returns the seconds of a duration. No time means no limit.
fn duration(value: &str) -> Option<f64> {
    humantime::parse_duration(value).ok().map(|duration| match duration {
        Duration::ZERO => f64::INFINITY,
        duration => duration.as_secs_f64(),
    })
}
