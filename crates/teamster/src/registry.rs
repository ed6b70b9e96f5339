//! Agents by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use teamster_agents::agent::{Agent, acp::Acp, claude::Claude, codex::Codex, gemini::Gemini, opencode::OpenCode};

/// The agent that is used if none is named.
pub(crate) const DEFAULT: &str = "claude";

/// The agents that a [`Runtime`](crate::Runtime) can run, by name. Names are compared without regard to case.
///
/// ```
/// use teamster::agent::acp::Acp;
/// use teamster::{Registry, Runtime};
///
/// let mut registry = Registry::default();
/// assert!(registry.get("Claude").is_ok());
/// registry.register(Acp::any());
/// let runtime = Runtime::builder().registry(registry).build();
/// assert_eq!(runtime.registry().names().count(), 5);
/// ```
#[derive(Clone)]
pub struct Registry {
    agents: BTreeMap<String, Arc<dyn Agent>>,
}

/// No agent has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent {name:?}; there are: {}", known.join(", "))]
#[non_exhaustive]
pub struct UnknownAgent {
    /// The requested name.
    pub name: String,
    /// The names of the agents.
    pub known: Vec<String>,
}

impl Registry {
    /// The name of the agent that is used if none is named.
    pub const DEFAULT: &'static str = DEFAULT;

    /// Returns a registry without agents.
    pub fn empty() -> Self {
        Self { agents: BTreeMap::new() }
    }

    /// Adds an agent under its own name. It replaces an agent with the same name.
    pub fn register(&mut self, agent: impl Agent + 'static) -> &mut Self {
        self.agents.insert(agent.name().to_lowercase(), Arc::new(agent));
        self
    }

    /// Returns the agent with this name.
    ///
    /// # Errors
    /// No agent has this name.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Agent>, UnknownAgent> {
        self.agents
            .get(&name.to_lowercase())
            .cloned()
            .ok_or_else(|| UnknownAgent { name: name.to_owned(), known: self.agents.keys().cloned().collect() })
    }

    /// Returns the names in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }
}

impl Default for Registry {
    /// Returns the agents that come with Teamster.
    fn default() -> Self {
        let mut registry = Self::empty();
        registry.register(Acp::any()).register(Claude).register(Codex).register(Gemini).register(OpenCode);
        registry
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.agents.keys()).finish()
    }
}
