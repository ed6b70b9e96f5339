//! The errors of a scenario.

/// The reason why a scenario cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// It is not valid TOML, or not in the documented format.
    #[error("not a scenario: {0}")]
    Toml(#[from] toml::de::Error),
    /// It is not valid JSON, or not in the documented format.
    #[error("not a scenario: {0}")]
    Json(#[from] serde_json::Error),
    /// It has no turn.
    #[error("the scenario has no turn: [[turns]] with steps is required")]
    Empty,
    /// There is no dialect for this agent.
    #[error("agent {0:?} cannot be imitated: use claude, codex, gemini or opencode")]
    UnknownAgent(String),
    /// There is no dialect for these arguments.
    #[error("{agent} cannot be imitated with these arguments: {supported}")]
    UnsupportedArguments {
        /// The agent.
        agent: &'static str,
        /// The supported arguments.
        supported: &'static str,
    },
    /// The dialect has no such tool.
    #[error("turn {turn}: {agent} has no tool {name:?}: use run, or a tool named {supported}")]
    UnsupportedTool {
        /// The turn, counted from 1.
        turn: usize,
        /// The agent.
        agent: &'static str,
        /// The tool.
        name: String,
        /// The supported tools.
        supported: &'static str,
    },
}
