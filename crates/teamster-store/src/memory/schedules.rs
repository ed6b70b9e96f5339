//! Schedules in the model.

use async_trait::async_trait;

use super::MemoryStore;
use super::state::page;
use crate::error::Result;
use crate::ids::{ScheduleId, Timestamp};
use crate::records::{
    FireOutcome, NewSchedule, Page, PageRequest, QueueLimits, Schedule, ScheduleFilter, ScheduleFiring,
};
use crate::store::ScheduleStore;

#[async_trait]
impl ScheduleStore for MemoryStore {
    async fn put_schedule(&self, schedule: NewSchedule, now: Timestamp) -> Result<Schedule> {
        self.with(|state| {
            let NewSchedule { id, conversation, body, next_at } = schedule;
            state.room(conversation)?;
            let key = match state.schedule_key(id) {
                Some(key) => key,
                None => state.next_key(),
            };
            let new = Schedule { id, conversation, body, next_at, last_at: None, created_at: now };
            let stored = state.schedules.entry(key).or_insert_with(|| new.clone());
            *stored = Schedule { last_at: stored.last_at, created_at: stored.created_at, ..new };
            Ok(stored.clone())
        })
    }

    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        self.with(|state| Ok(state.schedule_key(id).and_then(|key| state.schedules.get(&key)).cloned()))
    }

    async fn delete_schedule(&self, id: ScheduleId) -> Result<bool> {
        self.with(|state| Ok(state.schedule_key(id).and_then(|key| state.schedules.remove(&key)).is_some()))
    }

    async fn schedules(&self, filter: ScheduleFilter, request: PageRequest) -> Result<Page<Schedule>> {
        self.with(|state| {
            let matches = |one: &Schedule| {
                filter.conversation.is_none_or(|id| one.conversation == id)
                    && filter.due_by.is_none_or(|by| one.next_at.is_some_and(|at| at <= by))
            };
            let found = state.schedules.iter().filter(|(_, one)| matches(one));
            page(found.map(|(key, one)| (*key, one.clone())), &request)
        })
    }

    async fn fire_schedule(&self, firing: ScheduleFiring, limits: QueueLimits, now: Timestamp) -> Result<FireOutcome> {
        self.with(|state| {
            let ScheduleFiring { id, due_at, next_at, message, effects } = firing;
            let key = state.schedule_key(id);
            let found = key.and_then(|key| state.schedules.get(&key)).filter(|one| one.next_at == Some(due_at));
            let (Some(key), Some(conversation)) = (key, found.map(|one| one.conversation)) else {
                return Ok(FireOutcome::Stale);
            };
            state.check_deliveries(&effects.deliveries)?;
            let accepted = message.map(|message| state.accept(message, limits, now)).transpose()?;
            if let Some(schedule) = state.schedules.get_mut(&key) {
                schedule.next_at = next_at;
                schedule.last_at = Some(due_at);
            }
            state.apply(conversation, effects, now)?;
            Ok(FireOutcome::Fired(accepted))
        })
    }
}
