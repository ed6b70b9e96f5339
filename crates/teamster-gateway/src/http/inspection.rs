//! Inspects the agents of the gateway: their versions, their capabilities, and whether they can run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde::Serialize;
use teamster::Inspection;
use teamster::agent::{Feature, Support};
use tokio::sync::Mutex;
use utoipa::ToSchema;

use crate::engine::Gateway;

/// How long an inspection is reused. Each one starts the CLIs of all agents.
const FRESH: Duration = Duration::from_secs(15);

/// The last inspection. Concurrent callers share one.
#[derive(Clone, Default)]
pub(super) struct AgentCache(Arc<Mutex<Option<Inspected>>>);

/// The result of an inspection, and its time.
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
    /// Whether new conversations use it by default.
    is_default: bool,
    /// Why it cannot run, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The options that it supports, by name.
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

impl AgentCache {
    /// Returns all agents. They are inspected if the last inspection is too old.
    pub(super) async fn agents(&self, gateway: &Gateway) -> Vec<AgentView> {
        let mut cached = self.0.lock().await;
        if let Some((at, agents)) = &*cached
            && at.elapsed() < FRESH
        {
            return agents.clone();
        }
        let names = gateway.runtime().registry().names();
        let agents: Vec<_> = join_all(names.map(|name| inspect(gateway, name))).await.into_iter().flatten().collect();
        *cached = Some((Instant::now(), agents.clone()));
        agents
    }
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
