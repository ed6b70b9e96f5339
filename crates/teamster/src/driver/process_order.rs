//! What it takes to start the process of a session.

use std::sync::Arc;

use teamster_agents::agent::Agent;
use teamster_types::event::Failure;
use teamster_types::request::RunRequest;
use tokio_util::sync::CancellationToken;

use super::failures::rejected_plan;
use super::host::Host;
use super::process::{AgentProcess, IdleProcess};
use crate::permits::Permits;
use crate::runtime::plan_session;

/// What it takes to start the process of a session.
pub(super) struct ProcessOrder {
    pub(super) agent: Arc<dyn Agent>,
    pub(super) host: Host,
    pub(super) request: RunRequest,
    pub(super) permits: Permits,
}

impl ProcessOrder {
    /// Starts the process. Returns `None` if the agent has no live interface. If `cancel` is cancelled, the start fails.
    pub(super) async fn start(self, cancel: &CancellationToken) -> Result<Option<IdleProcess>, Failure> {
        let Self { agent, host, request, .. } = self;
        let Some(plan) = plan_session(&*agent, &request).map_err(|error| rejected_plan(&error))? else {
            return Ok(None);
        };
        let redactor = Arc::new(host.redactor(&plan.launch, &request));
        let process = AgentProcess::start(plan, host, redactor, &request.limits, cancel).await?;
        Ok(Some(IdleProcess::started(process)))
    }
}
