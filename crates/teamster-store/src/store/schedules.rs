//! Schedules.

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::{ScheduleId, Timestamp};
use crate::records::{
    FireOutcome, NewSchedule, Page, PageRequest, QueueLimits, Schedule, ScheduleFilter, ScheduleFiring,
};

/// Keeps schedules and fires each time once.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Creates or replaces a schedule.
    async fn put_schedule(&self, schedule: NewSchedule, now: Timestamp) -> Result<Schedule>;

    /// Returns a schedule.
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>>;

    /// Deletes a schedule, and returns whether it existed.
    async fn delete_schedule(&self, id: ScheduleId) -> Result<bool>;

    /// Lists schedules in the order of their creation.
    async fn schedules(&self, filter: ScheduleFilter, page: PageRequest) -> Result<Page<Schedule>>;

    /// Accepts the message of a due schedule and moves it to its next time, in one transaction.
    ///
    /// Fails with `QueueFull`; then the schedule stays due.
    async fn fire_schedule(&self, firing: ScheduleFiring, limits: QueueLimits, now: Timestamp) -> Result<FireOutcome>;
}
