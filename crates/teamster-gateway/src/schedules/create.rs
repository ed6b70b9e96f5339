//! Creates and deletes schedules.

use teamster_store::{
    ConversationId, Entity, NewSchedule, PageRequest, Schedule, ScheduleFilter, ScheduleId, StoreError,
};

use super::body::{ScheduleBody, ScheduleError};
use super::times::check;
use crate::engine::Gateway;
use crate::error::GatewayError;

/// Creates a schedule in a conversation. With the id of a schedule of the conversation, replaces it.
///
/// # Errors
/// The schedule is invalid, the conversation has too many, or does not exist.
pub async fn create(
    gateway: &Gateway,
    conversation: ConversationId,
    id: ScheduleId,
    body: &ScheduleBody,
) -> Result<Schedule, GatewayError> {
    let (limits, now) = (gateway.config().schedules, gateway.now());
    let next = check(body, limits, now)?;
    let known = gateway.store().schedule(id).await?;
    match known {
        // A schedule of another conversation must not be replaced.
        Some(known) if known.conversation != conversation => return Err(not_found(id)),
        Some(_) => {}
        None => {
            let filter = ScheduleFilter { conversation: Some(conversation), due_by: None };
            let limit = limits.per_conversation;
            let page = gateway.store().schedules(filter, PageRequest::first(limit.max(1))).await?;
            if page.items.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
                let problem =
                    format!("exceeds the limit: a conversation has at most {limit} schedules; delete one first");
                return Err(ScheduleError::new("schedule", problem).into());
            }
        }
    }
    let new = NewSchedule { id, conversation, body: teamster_store::Json::of(body)?, next_at: Some(next) };
    let schedule = gateway.store().put_schedule(new, now).await?;
    gateway.schedules_changed().notify_one();
    Ok(schedule)
}

/// Deletes a schedule of a conversation.
///
/// # Errors
/// The conversation has no such schedule.
pub async fn delete(gateway: &Gateway, conversation: ConversationId, id: ScheduleId) -> Result<(), GatewayError> {
    let known = gateway.store().schedule(id).await?;
    if known.is_none_or(|known| known.conversation != conversation) || !gateway.store().delete_schedule(id).await? {
        return Err(not_found(id));
    }
    gateway.schedules_changed().notify_one();
    Ok(())
}

fn not_found(id: ScheduleId) -> GatewayError {
    StoreError::NotFound { entity: Entity::Schedule, id: id.to_string() }.into()
}
