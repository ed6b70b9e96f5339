//! Liveness, readiness, and figures for the operator.

use std::time::Duration;

use axum::extract::State as Extract;
use serde::Serialize;
use teamster_store::StoreStatus;
use utoipa::ToSchema;

use super::extract::Authenticated;
use super::problem::{Problem, ProblemCode, Result};
use super::state::State;
use super::wire::Time;
use crate::access::Scope;
use crate::error::GatewayError;

/// How long a probe waits for the store.
const PROBE: Duration = Duration::from_secs(5);

/// The answer of a probe.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
}

/// Figures of the gateway.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Status)]
pub(super) struct StatusView {
    /// The release of the gateway.
    version: &'static str,
    /// This process as a worker.
    worker: String,
    /// Conversations.
    conversations: u64,
    /// Turns that wait.
    queued_turns: u64,
    /// Turns that run.
    running_turns: u64,
    /// Turns whose lease has expired.
    expired_leases: u64,
    /// Open permission requests.
    open_permission_requests: u64,
    /// Deliveries that have not ended.
    pending_deliveries: u64,
    /// Deliveries that were given up, or whose outcome is unknown.
    failed_deliveries: u64,
    /// Since when the oldest turn could run and has waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_since: Option<Time>,
    /// The size of the store in bytes. 0 if it is in memory.
    store_bytes: u64,
    /// Open event streams of this process.
    subscribers: usize,
}

/// Returns whether the process answers.
#[utoipa::path(get, path = "/healthz", tag = "operation", operation_id = "getHealth",
    responses((status = 200, body = Health)))]
pub(super) async fn healthz() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// Returns whether messages are accepted: the gateway does not stop, and its store can be reached.
#[utoipa::path(get, path = "/readyz", tag = "operation", operation_id = "getReadiness",
    responses((status = 200, body = Health)))]
pub(super) async fn readyz(Extract(api): State) -> Result<axum::Json<Health>> {
    if api.gateway.stopping().is_cancelled() {
        return Err(GatewayError::ShuttingDown.into());
    }
    match tokio::time::timeout(PROBE, api.gateway.store().feed_end()).await {
        Ok(read) => read.map(|_| axum::Json(Health { status: "ok" })).map_err(Into::into),
        Err(_) => Err(Problem::new(ProblemCode::StoreUnavailable, "the store does not answer").retry_after(5)),
    }
}

/// Returns figures for the operator.
#[utoipa::path(get, path = "/v1/status", tag = "operation", operation_id = "getStatus",
    responses((status = 200, body = StatusView)))]
pub(super) async fn status(Extract(api): State, caller: Authenticated) -> Result<axum::Json<StatusView>> {
    caller.require(Scope::Read)?;
    let gateway = &api.gateway;
    let StoreStatus {
        conversations,
        queued_turns,
        running_turns,
        expired_leases,
        open_permissions,
        pending_deliveries,
        failed_deliveries,
        waiting_since,
        bytes,
    } = gateway.store().status(gateway.now()).await?;
    Ok(axum::Json(StatusView {
        version: env!("CARGO_PKG_VERSION"),
        worker: gateway.worker().as_str().to_owned(),
        conversations,
        queued_turns,
        running_turns,
        expired_leases,
        open_permission_requests: open_permissions,
        pending_deliveries,
        failed_deliveries,
        waiting_since: waiting_since.map(Time),
        store_bytes: bytes,
        subscribers: gateway.config().limits.subscribers.saturating_sub(api.subscribers.free()),
    }))
}
