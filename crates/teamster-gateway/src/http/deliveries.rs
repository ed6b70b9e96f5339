//! Deliveries, for the operator.

use axum::extract::State as Extract;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use teamster_store::{
    ConversationId, Delivery, DeliveryFilter, DeliveryId, DeliveryPart, DeliveryState, PartState, TurnId,
};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::audit::audit_from;
use super::extract::{Authenticated, Id, Params, complete};
use super::problem::Result;
use super::state::State;
use super::wire::{List, Time, document, page};
use crate::access::Scope;

/// Which deliveries are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct DeliveryQuery {
    /// Only deliveries in this state.
    #[param(inline)]
    state: Option<StateName>,
    /// Only deliveries of this conversation.
    conversation_id: Option<Uuid>,
    /// Only deliveries of this turn.
    turn_id: Option<Uuid>,
    /// The number of items.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// The position of the page: `nextCursor` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DeliveryState)]
pub(super) enum StateName {
    /// It waits.
    Pending,
    /// A worker sends it.
    Sending,
    /// The service has confirmed it.
    Sent,
    /// It was given up. It can be retried.
    Failed,
    /// It is unknown whether the service has it. It can be retried.
    Unknown,
}

/// An item to show in a channel.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub(super) struct DeliveryView {
    /// Its id.
    id: Uuid,
    /// The channel.
    channel: String,
    /// The chat.
    chat: String,
    /// The thread in the chat.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    thread: String,
    /// Its conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<Uuid>,
    /// Its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<Uuid>,
    /// What is shown.
    #[schema(value_type = Object)]
    body: Box<RawValue>,
    /// Its state.
    state: StateName,
    /// The number of attempts.
    attempts: u32,
    /// It is not sent before this time.
    not_before: Time,
    /// The parts whose sending was started.
    parts: Vec<PartView>,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// When it was added.
    created_at: Time,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
}

/// A part of a delivery.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryPart)]
pub(super) struct PartView {
    /// Its number, starting at 0.
    index: u32,
    /// Whether the service has confirmed it. Otherwise its outcome is unknown.
    sent: bool,
    /// The service's own id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    service_id: Option<String>,
}

/// Lists deliveries, the oldest first.
#[utoipa::path(get, path = "/v1/deliveries", tag = "operation", operation_id = "listDeliveries",
    params(DeliveryQuery), responses((status = 200, body = List<DeliveryView>)))]
pub(super) async fn list(
    Extract(api): State,
    caller: Authenticated,
    Params(query): Params<DeliveryQuery>,
) -> Result<axum::Json<List<DeliveryView>>> {
    caller.require(Scope::Admin)?;
    let filter = DeliveryFilter {
        state: query.state.map(Into::into),
        conversation: query.conversation_id.map(ConversationId::new),
        turn: query.turn_id.map(TurnId::new),
    };
    let found = api.gateway.store().deliveries(filter, page(query.limit, query.cursor)?).await?;
    super::wire::list(found, view).map(axum::Json)
}

/// Queues a failed or unknown delivery again.
#[utoipa::path(post, path = "/v1/deliveries/{id}/retry", tag = "operation", operation_id = "retryDelivery",
    params(("id" = Uuid, Path, description = "The delivery.")), responses((status = 202, body = DeliveryView)))]
pub(super) async fn retry(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<DeliveryId>,
) -> Result<(StatusCode, axum::Json<DeliveryView>)> {
    caller.require(Scope::Admin)?;
    let gateway = api.gateway.clone();
    let delivery = complete(async move {
        let delivery = gateway.store().retry_delivery(id, gateway.now()).await?;
        gateway.deliveries_added().notify_one();
        audit_from(&gateway, &caller, "delivery.retry", &id.to_string()).await;
        Ok(delivery)
    });
    Ok((StatusCode::ACCEPTED, axum::Json(view(delivery.await?)?)))
}

fn view(delivery: Delivery) -> Result<DeliveryView> {
    let parts = delivery.parts.into_iter().map(|DeliveryPart { index, state }| match state {
        PartState::Started => PartView { index, sent: false, service_id: None },
        PartState::Sent(service_id) => PartView { index, sent: true, service_id },
    });
    Ok(DeliveryView {
        id: delivery.id.uuid(),
        channel: delivery.address.channel,
        chat: delivery.address.chat,
        thread: delivery.address.thread,
        conversation_id: delivery.conversation.map(ConversationId::uuid),
        turn_id: delivery.turn.map(TurnId::uuid),
        body: document(&delivery.body)?,
        state: delivery.state.into(),
        attempts: delivery.attempts,
        not_before: Time(delivery.not_before),
        parts: parts.collect(),
        error: delivery.error,
        created_at: Time(delivery.created_at),
        ended_at: delivery.ended_at.map(Time),
    })
}

impl From<DeliveryState> for StateName {
    fn from(state: DeliveryState) -> Self {
        match state {
            DeliveryState::Pending => Self::Pending,
            DeliveryState::Sending => Self::Sending,
            DeliveryState::Sent => Self::Sent,
            DeliveryState::Failed => Self::Failed,
            DeliveryState::Unknown => Self::Unknown,
        }
    }
}

impl From<StateName> for DeliveryState {
    fn from(state: StateName) -> Self {
        match state {
            StateName::Pending => Self::Pending,
            StateName::Sending => Self::Sending,
            StateName::Sent => Self::Sent,
            StateName::Failed => Self::Failed,
            StateName::Unknown => Self::Unknown,
        }
    }
}
