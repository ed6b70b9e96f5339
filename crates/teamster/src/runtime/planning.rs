//! Calls an agent to plan a run or a session.

use std::panic::{AssertUnwindSafe, catch_unwind};

use teamster_agents::agent::{Agent, Plan};
use teamster_types::request::{RequestError, RunRequest};

use super::error::RunError;

/// Plans a run. A panic of the agent becomes an error.
pub(crate) fn plan_run(agent: &dyn Agent, request: &RunRequest) -> Result<Plan, RunError> {
    catch_panic(agent, || agent.plan(request))
}

/// Plans the process of a session. Returns `None` if the agent has no live interface. A panic of the agent becomes an error.
pub(crate) fn plan_session(agent: &dyn Agent, request: &RunRequest) -> Result<Option<Plan>, RunError> {
    catch_panic(agent, || agent.plan_session(request))
}

fn catch_panic<T>(agent: &dyn Agent, call: impl FnOnce() -> Result<T, RequestError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(call))
        .map_err(|_| RunError::AgentPanicked { agent: agent.name().to_owned() })?
        .map_err(RunError::Request)
}
