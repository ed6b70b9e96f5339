//! How values are stored in columns. The codes of states are part of the schema and never change.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use uuid::Uuid;

use crate::ids::{
    ConversationId, Day, DeliveryId, Epoch, HostId, Json, MessageId, PermissionId, ScheduleId, Seq, Timestamp, TokenId,
    TurnId, WorkerId,
};
use crate::records::{ConversationState, DeliveryState, MessageMode, PermissionOutcome, Progress, TurnState};

/// Stores a wrapped value as the value.
macro_rules! wrapped {
    ($($type:ident: $inner:ty, $out:expr, $in:expr;)*) => { $(
        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                let out: fn(&$type) -> ToSqlOutput<'_> = $out;
                Ok(out(self))
            }
        }
        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let wrap: fn($inner) -> Self = $in;
                <$inner>::column_result(value).map(wrap)
            }
        }
    )* };
}

wrapped! {
    ConversationId: Uuid, |id| id.uuid().into(), Self::new;
    MessageId: Uuid, |id| id.uuid().into(), Self::new;
    TurnId: Uuid, |id| id.uuid().into(), Self::new;
    PermissionId: Uuid, |id| id.uuid().into(), Self::new;
    DeliveryId: Uuid, |id| id.uuid().into(), Self::new;
    ScheduleId: Uuid, |id| id.uuid().into(), Self::new;
    TokenId: Uuid, |id| id.uuid().into(), Self::new;
    WorkerId: String, |name| name.as_str().into(), Self::new;
    HostId: String, |name| name.as_str().into(), Self::new;
    Json: String, |json| json.as_str().into(), Self::from_store;
    Timestamp: i64, |at| at.as_millis().into(), Self::from_millis;
    Day: i32, |day| day.get().into(), Self::new;
    Seq: i64, |seq| integer(seq.get()).into(), |number| Self::new(unsigned(number));
    Epoch: i64, |epoch| integer(epoch.get()).into(), |number| Self::new(unsigned(number));
}

/// Returns a number as `SQLite` can store it. A larger one becomes the largest.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a number that `integer` has stored.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Stores the variants of an enum as numbers.
macro_rules! codes {
    ($($type:ident { $($variant:ident = $code:literal),* })*) => { $(
        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                let code: i64 = match self { $(Self::$variant => $code),* };
                Ok(code.into())
            }
        }
        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                match i64::column_result(value)? {
                    $($code => Ok(Self::$variant),)*
                    other => Err(FromSqlError::OutOfRange(other)),
                }
            }
        }
    )* };
}

codes! {
    ConversationState { Idle = 0, Queued = 1, Running = 2, Waiting = 3, Paused = 4 }
    TurnState { Queued = 0, Running = 1, Done = 2, Failed = 3, Aborted = 4 }
    Progress { Nothing = 0, Text = 1, Tools = 2 }
    MessageMode { Queue = 0, Steer = 1 }
    PermissionOutcome { Allowed = 0, AllowedAlways = 1, Denied = 2, TimedOut = 3, WorkerLost = 4, TurnEnded = 5 }
    DeliveryState { Pending = 0, Sending = 1, Sent = 2, Failed = 3, Unknown = 4 }
}
