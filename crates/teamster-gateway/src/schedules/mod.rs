//! Schedules: messages that arrive in a conversation at a time or again and again.
//!
//! | module | contents |
//! |---|---|
//! | `body` | what a schedule is: [`ScheduleBody`], and what is wrong with one |
//! | `cron` | cron expressions in a time zone |
//! | `create` | creates and deletes schedules |
//! | `plan`, `firing` | what happens to a due schedule, and the task that does it |
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
