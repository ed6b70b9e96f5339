//! Schedules: messages that arrive in a conversation at a time or again and again.
//!
//! | module | contents |
//! |---|---|
//! | `body` | what a schedule is: [`ScheduleBody`], and what is wrong with one |
//! | `cron` | cron expressions in a time zone |
//! | `times` | the next time of a schedule: [`next_time`], and the check of a new one |

mod body;
mod cron;
mod times;

pub use body::{Missed, ScheduleBody, ScheduleError, ScheduleLimits};
pub use times::{check, next_time};
