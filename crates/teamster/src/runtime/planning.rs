//! Calls an agent to plan a run or a session.

use std::panic::{AssertUnwindSafe, catch_unwind};

use teamster_agents::agent::{Agent, Plan};
use teamster_types::request::{Conversation, RequestError, RunRequest};

use super::error::RunError;

/// An id in the form that the CLIs use, to plan a turn before the session has an id.
const ANY_SESSION: &str = "00000000-0000-4000-8000-000000000000";

/// Plans a run. A panic of the agent becomes an error.
pub(crate) fn plan_run(agent: &dyn Agent, request: &RunRequest) -> Result<Plan, RunError> {
    catch_panic(agent, || agent.plan(request))
}

/// Plans the process of a session. Returns `None` if the agent has no live interface. A panic of the agent becomes an error.
pub(crate) fn plan_session(agent: &dyn Agent, request: &RunRequest) -> Result<Option<Plan>, RunError> {
    catch_panic(agent, || agent.plan_session(request))
}

/// Plans the first turn of a session whose turns are runs of their own, and a later one, which resumes the conversation.
pub(super) fn plan_turns(agent: &dyn Agent, request: &RunRequest) -> Result<(), RunError> {
    let turn = |conversation: Conversation| request.turn("x".into(), conversation);
    plan_run(agent, &turn(request.conversation.clone()))?;
    let later = turn(Conversation::Resume(ANY_SESSION.into()));
    let not_supported = |source| RunError::SendNotSupported { agent: agent.name().to_owned(), source };
    if let Some(capabilities) = agent.capabilities() {
        capabilities.check(agent.name(), &later).map_err(not_supported)?;
    }
    plan_run(agent, &later).map(drop).map_err(|error| match error {
        RunError::Request(source) => not_supported(source),
        other => other,
    })
}

fn catch_panic<T>(agent: &dyn Agent, call: impl FnOnce() -> Result<T, RequestError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(call))
        .map_err(|_| RunError::AgentPanicked { agent: agent.name().to_owned() })?
        .map_err(RunError::Request)
}
