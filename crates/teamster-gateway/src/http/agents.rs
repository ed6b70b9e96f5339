//! The agents of the gateway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State as Extract;
use futures::future::join_all;
use serde::Serialize;
use teamster::Inspection;
use teamster::agent::{Feature, Support};
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::State;
use super::extract::{Authenticated, complete};
use super::problem::Result;
use super::wire::List;
use crate::access::Scope;
use crate::engine::Gateway;

/// How long an inspection counts. Each one starts the CLIs of all agents.
const FRESH: Duration = Duration::from_secs(15);

/// The last inspection. Callers that come together share one.
#[derive(Default)]
pub(super) struct AgentCache(Arc<Mutex<Option<Inspected>>>);

/// What an inspection has found, and when.
type Inspected = (Instant, Vec<AgentView>);

/// An agent.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Agent)]
pub(super) struct AgentView {
    /// Its name.
    name: String,
    /// The version of its CLI.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The version that Teamster was tested with.
    #[serde(skip_serializing_if = "Option::is_none")]
    tested_version: Option<&'static str>,
    /// Whether its CLI can run. Whether the vendor accepts its credentials is not checked.
    available: bool,
    /// Whether conversations use it if nothing else is selected.
    is_default: bool,
    /// Why it cannot run, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// What it supports, by the name of the option.
    capabilities: BTreeMap<&'static str, CapabilityView>,
}

/// Whether an agent supports an option.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Capability)]
pub(super) struct CapabilityView {
    /// Whether it is supported.
    support: SupportName,
    /// How it is supported, or why it is not.
    note: &'static str,
}

/// Whether an option is supported.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Support)]
pub(super) enum SupportName {
    /// It is.
    Yes,
    /// It is ignored, with a warning.
    Ignored,
    /// A turn that uses it fails.
    Refused,
}

/// Lists the agents that the gateway knows, and whether they can run.
#[utoipa::path(get, path = "/v1/agents", tag = "agents", operation_id = "listAgents",
    responses((status = 200, body = List<AgentView>)))]
pub(super) async fn list(Extract(api): State, caller: Authenticated) -> Result<axum::Json<List<AgentView>>> {
    caller.require(Scope::Read)?;
    let (gateway, cache) = (api.gateway.clone(), Arc::clone(&api.agents.0));
    // The inspection ends also if this caller goes, so that the next one gets it.
    let agents = complete(async move {
        let mut cached = cache.lock().await;
        if let Some((at, agents)) = &*cached
            && at.elapsed() < FRESH
        {
            return Ok(agents.clone());
        }
        let names = gateway.runtime().registry().names();
        let agents: Vec<_> = join_all(names.map(|name| inspect(&gateway, name))).await.into_iter().flatten().collect();
        *cached = Some((Instant::now(), agents.clone()));
        Ok(agents)
    });
    Ok(axum::Json(List::whole(agents.await?)))
}

async fn inspect(gateway: &Gateway, name: &str) -> Option<AgentView> {
    let defaults = &gateway.config().turn;
    let is_default = defaults.agent.eq_ignore_ascii_case(name);
    let cli_path = defaults.cli_path.as_deref().filter(|_| is_default);
    let Inspection { agent, version, tested_version, problem, .. } =
        gateway.runtime().inspect(name, cli_path).await.ok()?;
    Some(AgentView {
        capabilities: capabilities(gateway, &agent),
        name: agent,
        version,
        tested_version,
        available: problem.is_none(),
        is_default,
        problem,
    })
}

fn capabilities(gateway: &Gateway, name: &str) -> BTreeMap<&'static str, CapabilityView> {
    let Ok(agent) = gateway.runtime().registry().get(name) else { return BTreeMap::new() };
    let Some(known) = agent.capabilities() else { return BTreeMap::new() };
    let view = |feature: &Feature| {
        let (support, note) = match known.support(*feature) {
            Support::Yes(how) => (SupportName::Yes, how),
            Support::Ignored(why) => (SupportName::Ignored, why),
            Support::Refused(why) => (SupportName::Refused, why),
        };
        (feature.field(), CapabilityView { support, note })
    };
    Feature::ALL.iter().map(view).collect()
}
