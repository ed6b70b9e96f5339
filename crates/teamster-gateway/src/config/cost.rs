//! Whether an agent reports its cost. A daily budget is not enforced for another one, so it gets no turn.

use teamster::Registry;
use teamster::agent::{Feature, Support};

/// Returns why a daily budget cannot be enforced for an agent.
pub(crate) fn without_cost(registry: &Registry, name: &str) -> Option<String> {
    let agent = registry.get(name).ok()?;
    let support = agent.capabilities().map(|capabilities| capabilities.support(Feature::MaxBudget));
    match support {
        Some(Support::Yes(_)) => None,
        _ => Some(format!("the agent {name} does not report its cost, so a daily budget cannot be enforced for it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_reports_no_cost_has_no_budget() {
        let registry = Registry::default();
        let without: Vec<_> = registry.names().filter(|name| without_cost(&registry, name).is_some()).collect();
        assert_eq!(without, ["acp", "codex", "gemini"]);
    }
}
