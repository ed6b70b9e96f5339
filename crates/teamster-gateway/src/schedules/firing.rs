//! The task that fires due schedules.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use teamster_store::{
    Accepted, Conversation, Effects, FireOutcome, Json, MessageId, MessageMode, NewEvent, NewMessage, PageRequest,
    Schedule, ScheduleFilter, ScheduleFiring, ScheduleId, StoreError, Target, Timestamp, TurnId,
};
use uuid::Uuid;

use super::body::{Missed, ScheduleBody};
use super::plan::{Plan, is_on_time, plan};
use crate::config::{ConversationSettings, Origin, resolve_message};
use crate::engine::Gateway;
use crate::error::GatewayError;
use crate::event::{GatewayEvent, rfc3339};
use crate::hooks::{HookEvent, Verdict};

/// The channel of the messages of schedules, for hooks.
const CHANNEL: &str = "schedule";

/// The longest time between two checks: another process may have created a schedule, and the clock may have changed.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// The time until a failed check or firing is repeated.
const RETRY: Duration = Duration::from_secs(5);

/// The schedules that are read at once.
const PAGE: u32 = 200;

/// The stored fields of a message of a schedule.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    schedule_id: String,
    due_at: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_api: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_agent: bool,
}

/// The schedules that could not fire at this time although the gateway tried in time. They are late, not missed.
type Delayed = HashMap<ScheduleId, Timestamp>;

/// Fires due schedules until the gateway stops.
pub(crate) async fn run(gateway: Gateway) {
    let mut delayed = Delayed::new();
    loop {
        let pause = match fire_due(&gateway, &mut delayed).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::error!(%error, "schedules cannot be read");
                RETRY
            }
        };
        tokio::select! {
            () = gateway.stopping().cancelled() => return,
            () = gateway.schedules_changed().notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Fires all due schedules, and returns the time until the next one.
async fn fire_due(gateway: &Gateway, delayed: &mut Delayed) -> Result<Duration, GatewayError> {
    let now = gateway.now();
    let mut request = PageRequest::first(PAGE);
    let mut pause = MAX_PAUSE;
    loop {
        let filter = ScheduleFilter { conversation: None, due_by: Some(now.after(MAX_PAUSE)) };
        let page = gateway.store().schedules(filter, request).await?;
        for schedule in page.items {
            pause = pause.min(fire_if_due(gateway, schedule, now, delayed).await);
        }
        let Some(next) = page.next else { return Ok(pause) };
        request = PageRequest { limit: PAGE, cursor: Some(next) };
    }
}

/// Fires a schedule if it is due, and returns the time until it must be checked again.
async fn fire_if_due(gateway: &Gateway, schedule: Schedule, now: Timestamp, delayed: &mut Delayed) -> Duration {
    let Some(due) = schedule.next_at else { return MAX_PAUSE };
    if due > now {
        return until(due, now);
    }
    let id = schedule.id;
    let is_delayed = delayed.get(&id) == Some(&due);
    let error = match fire(gateway, &schedule, due, now, is_delayed).await {
        Ok(next) => {
            delayed.remove(&id);
            // It may have no further time.
            return next.map_or(MAX_PAUSE, |next| until(next, now));
        }
        // It was deleted meanwhile.
        Err(GatewayError::Store(StoreError::NotFound { .. })) => {
            delayed.remove(&id);
            return MAX_PAUSE;
        }
        Err(error) => error,
    };
    if is_on_time(due, now) {
        delayed.insert(id, due);
    }
    // It stays due.
    match error {
        GatewayError::Store(StoreError::QueueFull { .. }) => {}
        GatewayError::Unavailable { .. } => tracing::warn!(schedule = %id, %error, "a schedule waits for a hook"),
        _ => tracing::error!(schedule = %id, %error, "a schedule cannot fire"),
    }
    RETRY
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(at.as_millis().saturating_sub(now.as_millis())).unwrap_or(0))
}

/// Fires a due schedule once, or skips its time, and returns its next time.
async fn fire(
    gateway: &Gateway,
    schedule: &Schedule,
    due: Timestamp,
    now: Timestamp,
    is_delayed: bool,
) -> Result<Option<Timestamp>, GatewayError> {
    let conversation = gateway.store().conversation(schedule.conversation, now).await?;
    let Some(conversation) = conversation else { return Ok(None) };
    let body: ScheduleBody = match schedule.body.to() {
        Ok(body) => body,
        Err(error) => return give_up(gateway, schedule, due, format!("its document is invalid: {error}")).await,
    };
    let Plan { fires, next } = match plan(&body, due, if is_delayed { due } else { now }) {
        Ok(plan) => plan,
        Err(error) => return give_up(gateway, schedule, due, error.to_string()).await,
    };
    let verdict = if fires {
        judge(gateway, &conversation, &body).await?
    } else {
        Verdict::Reject(missed(body.missed).to_owned())
    };
    let firing = match verdict {
        Verdict::Accept(text) => {
            let message = message(schedule, &body, text, due, now)?;
            ScheduleFiring {
                id: schedule.id,
                due_at: due,
                next_at: next,
                message: Some(message),
                effects: Effects::default(),
            }
        }
        Verdict::Reject(reason) => skip(schedule, due, next, reason, now)?,
        Verdict::Unavailable(reason) => return Err(GatewayError::Unavailable { reason }),
    };
    settle(gateway, schedule, firing).await
}

const fn missed(rule: Missed) -> &'static str {
    match rule {
        Missed::Skip => "the gateway was down",
        Missed::Once => "the gateway was down for longer than the maximum age",
    }
}

/// Applies the rules and hooks of messages.
async fn judge(gateway: &Gateway, conversation: &Conversation, body: &ScheduleBody) -> Result<Verdict, GatewayError> {
    let settings: ConversationSettings = conversation.settings.to()?;
    let address = &conversation.address;
    let origin = Origin { channel: &address.channel, chat: &address.chat, author: &body.author };
    if resolve_message(gateway.config(), Some(&conversation.agent), &settings, origin, body.by_api).is_none() {
        return Ok(Verdict::Reject("a rule of the operator does not permit messages from its author".to_owned()));
    }
    let event = HookEvent::MessageAccepted {
        conversation_id: Some(conversation.id.to_string()),
        channel: CHANNEL.to_owned(),
        chat: address.chat.clone(),
        author: body.author.clone(),
        text: body.text.clone(),
    };
    Ok(gateway.hooks().judge(&event).await)
}

fn message(
    schedule: &Schedule,
    body: &ScheduleBody,
    text: String,
    due: Timestamp,
    now: Timestamp,
) -> Result<NewMessage, GatewayError> {
    let (id, turn) = (MessageId::new(Uuid::now_v7()), TurnId::new(Uuid::now_v7()));
    let event = GatewayEvent::TurnQueued {
        message_id: id.to_string(),
        author: body.author.clone(),
        text: text.clone(),
        attachments: Vec::new(),
        schedule_id: Some(schedule.id.to_string()),
        by_agent: body.is_by_agent(),
    };
    Ok(NewMessage {
        id,
        turn,
        target: Target::Existing(schedule.conversation),
        channel_ids: Vec::new(),
        idempotency: None,
        author: body.author.clone(),
        text,
        details: Json::of(&Details {
            schedule_id: schedule.id.to_string(),
            due_at: rfc3339(due),
            by_api: body.by_api,
            by_agent: body.is_by_agent(),
        })?,
        mode: MessageMode::Queue,
        event: stored(&event, Some(turn), now)?,
    })
}

fn stored(event: &GatewayEvent, turn: Option<TurnId>, now: Timestamp) -> Result<NewEvent, GatewayError> {
    Ok(NewEvent { kind: event.kind().to_owned(), turn, at: now, body: Json::of(event)? })
}

fn skip(
    schedule: &Schedule,
    due: Timestamp,
    next: Option<Timestamp>,
    reason: String,
    now: Timestamp,
) -> Result<ScheduleFiring, GatewayError> {
    let event = GatewayEvent::ScheduleSkipped { schedule_id: schedule.id.to_string(), at: rfc3339(due), reason };
    let effects = Effects::events(vec![stored(&event, None, now)?]);
    Ok(ScheduleFiring { id: schedule.id, due_at: due, next_at: next, message: None, effects })
}

/// Stops a schedule that cannot be read. It stays in the list, without a next time.
async fn give_up(
    gateway: &Gateway,
    schedule: &Schedule,
    due: Timestamp,
    reason: String,
) -> Result<Option<Timestamp>, GatewayError> {
    tracing::error!(schedule = %schedule.id, reason, "a schedule is stopped");
    let firing = skip(schedule, due, None, reason, gateway.now())?;
    gateway.store().fire_schedule(firing, gateway.queue_limits(), gateway.now()).await?;
    gateway.announce_growth(schedule.conversation);
    Ok(None)
}

/// Stores a firing. A schedule without a further time is deleted afterwards: the log has its message.
async fn settle(
    gateway: &Gateway,
    schedule: &Schedule,
    firing: ScheduleFiring,
) -> Result<Option<Timestamp>, GatewayError> {
    let next = firing.next_at;
    let outcome = gateway.store().fire_schedule(firing, gateway.queue_limits(), gateway.now()).await?;
    match outcome {
        // Another process has fired it, or it was changed. The next check reads it again.
        FireOutcome::Stale => return Ok(Some(gateway.now())),
        FireOutcome::Fired(Some(Accepted::New(turn))) => {
            tracing::info!(schedule = %schedule.id, turn = %turn.turn, "a schedule has fired");
        }
        FireOutcome::Fired(_) => {}
    }
    gateway.announce_growth(schedule.conversation);
    if next.is_none() {
        gateway.store().delete_schedule(schedule.id).await?;
    }
    Ok(next)
}

#[cfg(test)]
mod tests;
