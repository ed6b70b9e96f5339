//! Ids, numbers and times.
//!
//! The caller generates all ids and reads the clock, so that an operation has the same result in each implementation.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Defines an id: a UUID, version 7 by convention.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Returns the UUID.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }
    };
}

uuid_id!(
    /// Names a conversation.
    ConversationId
);
uuid_id!(
    /// Names a message from a channel.
    MessageId
);
uuid_id!(
    /// Names a turn.
    TurnId
);
uuid_id!(
    /// Names a permission request.
    PermissionId
);
uuid_id!(
    /// Names a delivery.
    DeliveryId
);
uuid_id!(
    /// Names a schedule.
    ScheduleId
);
uuid_id!(
    /// Names an API token. It is not the token itself.
    TokenId
);

/// Defines a name that the caller selects.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Wraps a name.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// Returns the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// Names a process that runs turns or sends deliveries. Each start of a process has a new name.
    WorkerId
);
name!(
    /// Names a place where agents keep their session files. A restarted worker has the same host.
    HostId
);
name!(
    /// Marks a position in a list. Only the store interprets it.
    Cursor
);
name!(
    /// Marks a position in the feed of all conversations. Only the store interprets it.
    FeedCursor
);

/// Defines a number that only grows.
macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// Returns the number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Returns the following number.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

counter!(
    /// The number of an event in its conversation. The first event has number 1, and there are no gaps.
    Seq
);
counter!(
    /// The number of a claim: a fencing token that grows with every claim of the same conversation or delivery.
    Epoch
);

impl Seq {
    /// The position before the first event.
    pub const START: Self = Self(0);
}

/// A time in UTC, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Wraps a number of milliseconds since 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the number of milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the time after a duration, or the last time that can be expressed.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// A day of budgets and usage. The caller selects the time zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

impl Day {
    /// Wraps a number of days since 1970.
    pub const fn new(days: i32) -> Self {
        Self(days)
    }

    /// Returns the number of days since 1970.
    pub const fn get(self) -> i32 {
        self.0
    }
}

/// A JSON document that the store keeps and does not interpret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(String);

impl Json {
    /// Checks a text and wraps it.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        serde_json::from_str::<&serde_json::value::RawValue>(&text)?;
        Ok(Self(text))
    }

    /// Serializes a value.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(Self)
    }

    /// Returns the document `{}`.
    pub fn empty() -> Self {
        Self("{}".to_owned())
    }

    /// Returns the text of the document.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Deserializes the document.
    pub fn to<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Wraps a text that this type has checked before.
    #[cfg(feature = "sqlite")]
    pub(crate) const fn from_store(text: String) -> Self {
        Self(text)
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::empty()
    }
}

/// Shows the length only, because a document may contain text that a log must not show.
impl fmt::Debug for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Json({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_json_is_refused() {
        assert!(Json::parse("{\"a\":").is_err());
        assert!(Json::parse("").is_err());
        assert_eq!(Json::parse("{\"a\": 1}").unwrap().as_str(), "{\"a\": 1}");
    }

    #[test]
    fn the_debug_output_of_a_document_shows_no_content() {
        assert_eq!(format!("{:?}", Json::parse("\"secret\"").unwrap()), "Json(8 bytes)");
    }

    #[test]
    fn a_time_too_far_in_the_future_is_the_last_one() {
        assert_eq!(Timestamp::from_millis(1).after(Duration::MAX), Timestamp::from_millis(i64::MAX));
    }
}
