//! Schedules: messages that arrive in a conversation once or repeatedly.
//!
//! | module | contents |
//! |---|---|
//! | `body` | a schedule: [`ScheduleBody`], and its errors |
//! | `cron` | cron expressions in a time zone |
//! | `create` | creates and deletes schedules |
//! | `plan`, `firing` | the decision about a due schedule, and the task that fires it |
//! | `times` | the next time of a schedule: [`next_time`], and the check of a new one |

mod body;
mod create;
mod cron;
mod firing;
mod plan;
mod times;

pub(crate) use body::BY_TURN;
pub use body::{Missed, ScheduleBody, ScheduleError, ScheduleLimits};
pub use create::{create, delete};
pub(crate) use firing::run;
pub use times::{check, next_time};
