//! Liveness, readiness, and figures for the operator.

use axum::extract::State as Extract;
use serde::Serialize;
use teamster_store::StoreStatus;
use utoipa::ToSchema;

use super::extract::Authenticated;
use super::problem::Result;
use super::state::State;
use super::wire::Time;
use crate::access::Scope;
use crate::channels::ChannelStatus;
use crate::error::GatewayError;
use crate::hooks::HookFailure;

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
    /// The time since which the oldest turn that is ready to run has waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_since: Option<Time>,
    /// The size of the store in bytes. 0 if it is in memory.
    store_bytes: u64,
    /// Open event streams of this process.
    subscribers: usize,
    /// The channels. Only for tokens with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<Vec<ChannelView>>,
    /// Failures of hooks since the start. Only for tokens with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_failures: Option<HookFailuresView>,
}

/// A channel.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChannelStatus)]
pub(super) struct ChannelView {
    /// Its name.
    name: String,
    /// Whether it receives messages.
    receives: bool,
    /// The last reason why the channel ended or could not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// When that happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<Time>,
}

/// Failures of hooks.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HookFailures)]
pub(super) struct HookFailuresView {
    /// Their number.
    count: u64,
    /// The last ones, the oldest first.
    recent: Vec<HookFailureView>,
}

/// A failure of a hook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HookFailure)]
pub(super) struct HookFailureView {
    /// When it failed.
    at: Time,
    /// The name of the hook.
    hook: String,
    /// The event of the call.
    event: &'static str,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<String>,
    /// Why.
    reason: String,
}

impl From<HookFailure> for HookFailureView {
    fn from(failure: HookFailure) -> Self {
        // The output of the hook may quote the message.
        let HookFailure { at, hook, event, conversation, reason, output: _ } = failure;
        let conversation_id = conversation.map(|id| id.to_string());
        Self { at: Time(at), hook, event: event.name(), conversation_id, reason }
    }
}

impl From<(String, ChannelStatus)> for ChannelView {
    fn from((name, status): (String, ChannelStatus)) -> Self {
        let ChannelStatus { receives, last_error, failed_at } = status;
        Self { name, receives, last_error, failed_at: failed_at.map(Time) }
    }
}

/// Returns whether the process answers.
#[utoipa::path(get, path = "/healthz", tag = "operation", operation_id = "getHealth",
    responses((status = 200, body = Health)))]
pub(super) async fn healthz() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// Returns whether messages are accepted: the gateway does not stop, and its store can be written.
#[utoipa::path(get, path = "/readyz", tag = "operation", operation_id = "getReadiness",
    responses((status = 200, body = Health)))]
pub(super) async fn readyz(Extract(api): State) -> Result<axum::Json<Health>> {
    if api.gateway.stopping().is_cancelled() {
        return Err(GatewayError::ShuttingDown.into());
    }
    api.readiness.check(&api.gateway).await?;
    Ok(axum::Json(Health { status: "ok" }))
}

/// Returns figures for the operator.
#[utoipa::path(get, path = "/v1/status", tag = "operation", operation_id = "getStatus",
    responses((status = 200, body = StatusView)))]
pub(super) async fn status(Extract(api): State, caller: Authenticated) -> Result<axum::Json<StatusView>> {
    caller.require(Scope::Read)?;
    let (gateway, is_admin) = (&api.gateway, caller.is_admin());
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
        channels: is_admin.then(|| gateway.channel_status().into_iter().map(Into::into).collect()),
        hook_failures: is_admin.then(|| HookFailuresView {
            count: gateway.hooks().failure_count(),
            recent: gateway.hooks().recent_failures().into_iter().map(Into::into).collect(),
        }),
    }))
}
