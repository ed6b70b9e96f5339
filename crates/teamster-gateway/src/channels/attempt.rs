//! One attempt at a delivery.

use std::sync::Arc;
use std::time::{Duration, Instant};

use teamster_channel::{Content, Operation};
use teamster_store::{
    ClaimedDelivery, Delivery, DeliveryFilter, DeliveryLease, DeliveryPart, DeliveryState, DeliveryStep, PartState,
    StoreError,
};

use super::body::Body;
use super::context::Context;
use super::decision::{Attempt, LONGEST_OUTAGE, Next, delay};
use super::failpoint::Step;
use super::send::{Job, PartEnd};
use super::{ending, parts};

/// Makes one attempt at a claimed delivery. `since` is a time before the claim.
pub(super) async fn run(context: &Context, claimed: ClaimedDelivery, since: Instant) {
    let (lease, id) = (claimed.lease, claimed.delivery.id);
    let outcome = tokio::select! {
        outcome = attempt(context, claimed.delivery, lease) => outcome,
        () = keep_lease(context, lease, since) => {
            tracing::warn!(delivery = %id, "the lease of a delivery was lost; another process sends it");
            return;
        }
    };
    if let Err(error) = outcome {
        // Nothing is lost: the delivery is claimed again when its lease has expired.
        tracing::error!(delivery = %id, %error, "cannot record a step of a delivery");
    }
}

/// Renews a lease. Returns when it is lost or cannot be renewed in time.
async fn keep_lease(context: &Context, lease: DeliveryLease, since: Instant) {
    let duration = context.gateway.config().channels.delivery.lease;
    let mut valid_until = since + duration;
    loop {
        tokio::time::sleep(duration / 3).await;
        let before = Instant::now();
        match context.step(lease, DeliveryStep::Renew(duration)).await {
            Ok(_) => valid_until = before + duration,
            Err(StoreError::DeliveryLeaseLost { .. }) => return,
            Err(error) => tracing::warn!(delivery = %lease.delivery, %error, "cannot renew the lease of a delivery"),
        }
        if Instant::now() + duration / 3 >= valid_until {
            return;
        }
    }
}

async fn attempt(context: &Context, delivery: Delivery, lease: DeliveryLease) -> Result<(), StoreError> {
    context.failpoint.reach(Step::Claimed).await;
    let end = send_all(context, &delivery, lease).await?;
    context.failpoint.reach(Step::AllConfirmed).await;
    ending::record(context, &delivery, lease, end).await
}

/// Sends the parts that are not confirmed. `None`: all parts are confirmed.
async fn send_all(context: &Context, delivery: &Delivery, lease: DeliveryLease) -> Result<Option<Next>, StoreError> {
    let body: Body = match delivery.body.to() {
        Ok(body) => body,
        Err(error) => return Ok(Some(Next::Failed(format!("its stored document is invalid: {error}")))),
    };
    let capabilities = context.channel.capabilities();
    if matches!(body.content, Content::Progress { .. }) && !capabilities.edits {
        return Ok(None);
    }
    let settings = &context.gateway.config().channels.delivery;
    let now = context.gateway.now();
    let age = now.as_millis().saturating_sub(delivery.created_at.as_millis());
    let was_started = delivery.parts.iter().any(|part| part.state == PartState::Started);
    let attempt = Attempt {
        number: delivery.attempts,
        max: capabilities.max_attempts.unwrap_or(settings.max_attempts).max(1),
        delay: delay(settings, delivery.attempts),
        now,
        age: Duration::from_millis(u64::try_from(age).unwrap_or_default()),
        // A configured number of attempts is exact.
        longest_outage: if capabilities.max_attempts.is_some() { Duration::ZERO } else { LONGEST_OUTAGE },
        is_uncertain: was_started,
    };
    if let Some(next) = attempt.given_up(was_started) {
        return Ok(Some(next));
    }
    let bytes = match load(context, &body.content, capabilities.max_file_bytes, attempt).await {
        Ok(bytes) => bytes,
        Err(next) => return Ok(Some(next)),
    };
    let contents = parts::parts(&body.content, &capabilities);
    let replaced = if capabilities.edits { replaced_message(context, delivery, &body).await? } else { None };
    let job = Job { context, delivery, lease, attempt, bytes, count: contents.len() };
    for (index, content) in contents.into_iter().enumerate() {
        let operation = match &replaced {
            Some(id) if index == 0 => Operation::Edit(id.clone()),
            _ => Operation::New,
        };
        match job.part(index, content, operation).await? {
            PartEnd::Confirmed => context.failpoint.reach(Step::Confirmed).await,
            PartEnd::Open(next) => return Ok(Some(next)),
        }
    }
    Ok(None)
}

/// Returns the bytes of a file, which is empty for another content.
async fn load(context: &Context, shown: &Content, max: u64, attempt: Attempt) -> Result<Arc<[u8]>, Next> {
    let Content::File(file) = shown else { return Ok(Arc::from([])) };
    if max == 0 {
        return Err(Next::Failed(format!("the channel {} cannot send files", context.channel.name())));
    }
    let bytes = match context.gateway.attachments().get(&file.hash).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Next::Failed("the file no longer exists".to_owned()));
        }
        Err(error) => return Err(attempt.later(&format!("the file cannot be read: {error}"), None)),
    };
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > max {
        let size = bytes.len();
        return Err(Next::Failed(format!("the file has {size} bytes; the service accepts {max}")));
    }
    Ok(bytes.into())
}

/// Returns the service's id of a part that was sent.
pub(super) fn sent_id(part: Option<&DeliveryPart>) -> Option<String> {
    match part.map(|part| &part.state) {
        Some(PartState::Sent(id)) => id.clone(),
        _ => None,
    }
}

/// Returns the id of the message that the delivery replaces. `None`: there is none, or another delivery has replaced it.
async fn replaced_message(context: &Context, delivery: &Delivery, body: &Body) -> Result<Option<String>, StoreError> {
    let (Some(key), Some(turn)) = (&body.replaces, delivery.turn) else { return Ok(None) };
    let filter = DeliveryFilter { turn: Some(turn), ..DeliveryFilter::default() };
    let others = super::pages::all_deliveries(context.gateway.store(), filter).await?;
    let Some(replaced) = others.iter().find(|other| other.key == *key) else { return Ok(None) };
    let age = context.gateway.now().as_millis().saturating_sub(replaced.created_at.as_millis());
    let age = Duration::from_millis(u64::try_from(age).unwrap_or_default());
    if context.channel.capabilities().edit_window.is_some_and(|window| age >= window) {
        return Ok(None);
    }
    let first_id = |of: &Delivery| sent_id(of.parts.first());
    let found = match body.content {
        // The buttons of a prompt are in its last part. Before that is sent, there is nothing to close.
        Content::PromptClosed { .. } if replaced.state != DeliveryState::Sent => None,
        Content::PromptClosed { .. } => sent_id(replaced.parts.last()),
        _ => first_id(replaced),
    };
    let Some(id) = found else { return Ok(None) };
    let is_taken = others
        .iter()
        .any(|other| other.key != *key && other.id != delivery.id && first_id(other).as_ref() == Some(&id));
    Ok((!is_taken).then_some(id))
}
