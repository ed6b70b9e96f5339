//! Records the end of an attempt at a delivery, visibly for the operator and the chat.

use teamster_channel::Content;
use teamster_store::{
    Delivery, DeliveryId, DeliveryLease, DeliveryStep, Effects, Json, NewDelivery, NewEvent, StoreError,
};
use uuid::Uuid;

use super::body::Body;
use super::context::Context;
use super::decision::{Next, UNKNOWN};
use crate::event::GatewayEvent;
use crate::hooks::HookEvent;

/// Records the end of an attempt. `None`: all parts are confirmed.
pub(super) async fn record(
    context: &Context,
    delivery: &Delivery,
    lease: DeliveryLease,
    end: Option<Next>,
) -> Result<(), StoreError> {
    let Some(end) = end else {
        context.step(lease, DeliveryStep::Sent).await?;
        return Ok(());
    };
    let (step, reason, is_unknown) = match end {
        Next::Retry(at, reason) => {
            let (attempt, reason) = (delivery.attempts, kept_request(delivery, reason));
            tracing::info!(delivery = %delivery.id, attempt, reason, "a delivery was not sent; it is sent again later");
            context.step(lease, DeliveryStep::Retry(at, reason)).await?;
            return Ok(());
        }
        Next::Wait(at, reason, attempts) => {
            let (channel, reason) = (context.channel.name(), kept_request(delivery, reason));
            tracing::warn!(delivery = %delivery.id, channel, reason, "the channel cannot send; a delivery waits for at most a day");
            context.step(lease, DeliveryStep::Wait { at, error: reason, attempts }).await?;
            return Ok(());
        }
        Next::Postpone(at) => {
            context.step(lease, DeliveryStep::Postpone(at)).await?;
            return Ok(());
        }
        Next::Failed(reason) => (DeliveryStep::Failed(reason.clone()), reason, false),
        Next::Unknown(reason) => (DeliveryStep::Unknown(reason.clone()), reason, true),
    };
    tracing::error!(delivery = %delivery.id, channel = context.channel.name(), reason, "a delivery was given up");
    let effects = effects(context, delivery, &reason, is_unknown);
    context.gateway.store().advance_delivery(lease, step, effects, context.gateway.now()).await?;
    if let Some(conversation) = delivery.conversation {
        context.gateway.announce_growth(conversation);
    }
    let event = HookEvent::DeliveryFailed { delivery_id: delivery.id.to_string(), reason };
    context.gateway.hooks().notify(event);
    Ok(())
}

/// Returns the reason to store. A caller's request to send a delivery that the service may already have remains after a failure.
fn kept_request(delivery: &Delivery, reason: String) -> String {
    let is_requested = delivery.error.as_deref().is_some_and(|error| error.starts_with(UNKNOWN));
    if is_requested { format!("{UNKNOWN}{reason}") } else { reason }
}

/// Returns the event for the log, and a notice for the chat if it can help.
fn effects(context: &Context, delivery: &Delivery, reason: &str, is_unknown: bool) -> Effects {
    let event = GatewayEvent::DeliveryFailed { delivery_id: delivery.id.to_string(), reason: reason.to_owned() };
    let at = context.gateway.now();
    let events = Json::of(&event).map(|body| NewEvent { kind: event.kind().to_owned(), turn: delivery.turn, at, body });
    let notice = notice_text(delivery, reason, is_unknown).and_then(|text| {
        let body = Json::of(&Body::of(Content::Notice { text })).ok()?;
        Some(NewDelivery {
            id: DeliveryId::new(Uuid::now_v7()),
            key: format!("{}:lost", delivery.key),
            address: delivery.address.clone(),
            conversation: delivery.conversation,
            turn: delivery.turn,
            body,
            not_before: at,
        })
    });
    Effects { events: events.into_iter().collect(), deliveries: notice.into_iter().collect() }
}

/// Returns the notice about a delivery that was given up. There is none for a lost notice, because notices about
/// notices would never end.
fn notice_text(delivery: &Delivery, reason: &str, is_unknown: bool) -> Option<String> {
    let body: Body = delivery.body.to().ok()?;
    match body.content {
        Content::Notice { .. } | Content::Progress { .. } | Content::PromptClosed { .. } => None,
        Content::File(file) => {
            let name = teamster_channel::render::inline_code(&file.name);
            Some(format!("The file {name} could not be sent: {}.", teamster_channel::render::escape(reason)))
        }
        _ if is_unknown => {
            let text = "A message may not have been delivered here. It is in the log of the conversation.";
            Some(text.to_owned())
        }
        _ => None,
    }
}
