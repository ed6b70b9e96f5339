//! The configuration of a [`Backend`](super::Backend), and the environment variables that set it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use teamster_types::request::RunRequest;

use self::variables::DEFAULT_MAX_TURNS;
use crate::registry::Registry;
use crate::runtime::Runtime;

/// The names of the environment variables that [`BackendConfig::from_env`] and the command `teamster` read, and their defaults.
pub mod variables {
    use std::num::NonZeroU32;

    /// The agent's name. Default: `claude`.
    pub const AGENT: &str = "AGENT_BACKEND";
    /// The path or name of the agent's CLI. Default: the agent's usual program.
    pub const CLI_PATH: &str = "BACKEND_CLI_PATH";
    /// The model, named as the agent names it. Default: the agent's own.
    pub const MODEL: &str = "BACKEND_MODEL";
    /// The maximum number of turns (model calls) of a query. Default: [`DEFAULT_MAX_TURNS`], also for an invalid value.
    pub const MAX_TURNS: &str = "BACKEND_MAX_TURNS";
    /// The maximum number of turns where [`MAX_TURNS`] is invalid. A gateway and a backend use it also where it is not set.
    // `unwrap` is evaluated at compile time.
    pub const DEFAULT_MAX_TURNS: NonZeroU32 = NonZeroU32::new(25).unwrap();
    /// Rules of allowed tools, separated by commas: `Read,Bash(git diff:*)`.
    pub const ALLOWED_TOOLS: &str = "ALLOWED_TOOLS";
    /// The deadline of a query, in milliseconds. Default: none.
    pub const QUERY_TIMEOUT_MS: &str = "QUERY_TIMEOUT_MS";
    /// The agent's working directory. Default: that of the process. Only the command reads it.
    pub const WORKING_DIR: &str = "WORKING_DIR";
    /// The token of a Discord bot. Only the gateway reads it.
    pub const DISCORD_TOKEN: &str = "DISCORD_TOKEN";
    /// The token of the gateway's operator, and of its shell clients. Only the command reads it.
    pub const GATEWAY_TOKEN: &str = "TEAMSTER_TOKEN";
}

/// The configuration of a [`Backend`](super::Backend).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackendConfig {
    /// The agent's name, for the caller to pass to [`Backend::create`](super::Backend::create).
    pub agent: String,
    /// The options of every query. Its prompt and conversation are replaced by those of the query; the system prompt of
    /// the query is appended to its `append_system_prompt`.
    pub request: RunRequest,
    /// The runtime that starts the queries.
    pub runtime: Arc<Runtime>,
    /// Each invalid value of the configuration, with the value that is used instead. Log each of them.
    pub warnings: Vec<String>,
}

impl BackendConfig {
    /// Creates a configuration with these options for every query, on a runtime of its own.
    pub fn new(request: RunRequest) -> Self {
        let (agent, runtime) = (Registry::DEFAULT.to_owned(), Arc::new(Runtime::new()));
        Self { agent, request, runtime, warnings: Vec::new() }
    }

    /// Replaces the runtime.
    #[must_use]
    pub fn with_runtime(mut self, runtime: Arc<Runtime>) -> Self {
        self.runtime = runtime;
        self
    }

    /// Reads the [variables] of this process.
    ///
    /// ```no_run
    /// use teamster::backend::{Backend, BackendConfig};
    ///
    /// let config = BackendConfig::from_env();
    /// let agent = config.agent.clone();
    /// let backend = Backend::create(&agent, config)?;
    /// # Ok::<(), teamster::backend::BackendError>(())
    /// ```
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// Reads the [variables] with this function. An empty variable counts as not set.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut config = Self::new(RunRequest::default());
        let value = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &str| value(name).map(|value| value.to_string_lossy().into_owned());
        if let Some(agent) = text(variables::AGENT) {
            config.agent = agent;
        }
        config.request.cli_path = value(variables::CLI_PATH).map(PathBuf::from);
        config.request.model = text(variables::MODEL);
        let max_turns = text(variables::MAX_TURNS).map(|text| {
            text.trim().parse().unwrap_or_else(|_| {
                config.warn_invalid(variables::MAX_TURNS, &text, &format!("{DEFAULT_MAX_TURNS} is used"));
                DEFAULT_MAX_TURNS
            })
        });
        config.request.max_turns = Some(max_turns.unwrap_or(DEFAULT_MAX_TURNS));
        config.request.permissions.allow =
            text(variables::ALLOWED_TOOLS).map_or_else(Vec::new, |list| split_rules(&list));
        match text(variables::QUERY_TIMEOUT_MS) {
            None => {}
            Some(text) => match text.trim().parse() {
                Ok(milliseconds @ 1..) => config.request.limits.deadline = Duration::from_millis(milliseconds),
                _ => config.warn_invalid(variables::QUERY_TIMEOUT_MS, &text, "no deadline is set"),
            },
        }
        config
    }

    fn warn_invalid(&mut self, name: &str, value: &str, consequence: &str) {
        self.warnings.push(format!("{name} must be a whole number from 1, not {value:?}; {consequence}"));
    }
}

/// Splits a list of tool rules at its commas, except at commas inside a rule.
///
/// ```
/// assert_eq!(teamster::backend::split_rules("Bash(echo a,b), Read,"), ["Bash(echo a,b)", "Read"]);
/// ```
pub fn split_rules(list: &str) -> Vec<String> {
    let mut rules = vec![String::new()];
    let mut depth = 0_usize;
    for character in list.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match rules.last_mut() {
            Some(rule) if character != ',' || depth > 0 => rule.push(character),
            _ => rules.push(String::new()),
        }
    }
    rules.iter().map(|rule| rule.trim().to_owned()).filter(|rule| !rule.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> BackendConfig {
        BackendConfig::from_variables(|name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn without_variables_the_agent_is_claude_with_25_turns() {
        for variables in [&[][..], &[("AGENT_BACKEND", ""), ("BACKEND_MAX_TURNS", ""), ("ALLOWED_TOOLS", "")]] {
            let config = read(variables);
            assert_eq!((config.agent.as_str(), config.request.max_turns), ("claude", NonZeroU32::new(25)));
            assert_eq!(config.request.limits, RunRequest::default().limits);
            assert!(config.warnings.is_empty() && config.request.permissions.allow.is_empty());
        }
    }

    #[test]
    fn every_variable_sets_its_option() {
        let config = read(&[
            ("AGENT_BACKEND", "codex"),
            ("BACKEND_CLI_PATH", "/opt/codex"),
            ("BACKEND_MODEL", "gpt"),
            ("BACKEND_MAX_TURNS", " 7 "),
            ("ALLOWED_TOOLS", "Bash(echo a,b), Read"),
            ("QUERY_TIMEOUT_MS", "1500"),
        ]);
        assert_eq!(config.agent, "codex");
        assert_eq!(config.request.cli_path, Some("/opt/codex".into()));
        assert_eq!(config.request.model.as_deref(), Some("gpt"));
        assert_eq!(config.request.max_turns, NonZeroU32::new(7));
        assert_eq!(config.request.permissions.allow, ["Bash(echo a,b)", "Read"]);
        assert_eq!(config.request.limits.deadline, Duration::from_millis(1500));
        assert!(config.warnings.is_empty());
    }

    #[test]
    fn an_invalid_number_is_a_warning_and_the_default() {
        for invalid in ["0", "-1", "many", "1.5", "99999999999999999999999"] {
            let config = read(&[("BACKEND_MAX_TURNS", invalid), ("QUERY_TIMEOUT_MS", invalid)]);
            assert_eq!(config.request.max_turns, NonZeroU32::new(25), "{invalid}");
            assert_eq!(config.request.limits, RunRequest::default().limits, "{invalid}");
            assert_eq!(config.warnings.len(), 2, "{invalid}");
            assert!(config.warnings[0].contains("BACKEND_MAX_TURNS") && config.warnings[0].contains(invalid));
        }
    }

    #[test]
    fn a_list_of_rules_is_not_split_at_commas_inside_a_rule() {
        assert_eq!(split_rules("Bash(echo a,b), Read,,Edit"), ["Bash(echo a,b)", "Read", "Edit"]);
        assert_eq!(split_rules(" , "), <[&str; 0]>::default());
        assert_eq!(split_rules("Odd),Read"), ["Odd)", "Read"]);
    }
}
