//! The agents of the gateway.

use axum::extract::State as Extract;

use super::extract::{Authenticated, complete};
use super::inspection::AgentView;
use super::problem::Result;
use super::state::State;
use super::wire::List;
use crate::access::Scope;

/// Lists the agents of the gateway, and whether they can run.
#[utoipa::path(get, path = "/v1/agents", tag = "agents", operation_id = "listAgents",
    responses((status = 200, body = List<AgentView>)))]
pub(super) async fn list(Extract(api): State, caller: Authenticated) -> Result<axum::Json<List<AgentView>>> {
    caller.require(Scope::Read)?;
    let (gateway, cache) = (api.gateway.clone(), api.agents.clone());
    // The inspection continues if this caller disconnects, so that the next caller gets its result.
    let agents = complete(async move { Ok(cache.agents(&gateway).await) });
    Ok(axum::Json(List::whole(agents.await?)))
}
