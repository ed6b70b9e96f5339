//! The run that an event belongs to, and the time when it was emitted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize, Serializer};
use teamster_types::event::Event;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

/// An event with its run, its turn, and the time when it was emitted. It may be read much later.
///
/// In JSON it is the event with the additional fields `runId`, `turnId`, `time` (RFC 3339, UTC) and `labels`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StampedEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// The run, or the session: a UUID.
    #[serde(serialize_with = "shared")]
    pub run_id: Arc<str>,
    /// The id of the turn, if it has one ([`Run::turn_id`](crate::Run::turn_id)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// When it was emitted, in milliseconds.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// The caller's labels ([`RunRequest::labels`](crate::RunRequest)).
    #[serde(skip_serializing_if = "no_labels", serialize_with = "shared")]
    pub labels: Arc<BTreeMap<String, String>>,
}

fn no_labels(labels: &Arc<BTreeMap<String, String>>) -> bool {
    labels.is_empty()
}

fn shared<T: Serialize + ?Sized, S: Serializer>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().serialize(serializer)
}

fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let text = OffsetDateTime::from(*time).format(&Rfc3339).unwrap_or_default();
    serializer.serialize_str(&text)
}

/// What all events of a run have in common.
#[derive(Clone, Debug)]
pub(crate) struct RunIdentity {
    pub(crate) run_id: Arc<str>,
    pub(crate) labels: Arc<BTreeMap<String, String>>,
}

impl RunIdentity {
    pub(crate) fn new(labels: &BTreeMap<String, String>) -> Self {
        Self { run_id: Uuid::new_v4().to_string().into(), labels: Arc::new(labels.clone()) }
    }

    pub(crate) fn stamp(&self, timed: Timed, turn_id: Option<&str>) -> StampedEvent {
        StampedEvent {
            time: timed.time(),
            event: timed.event,
            run_id: Arc::clone(&self.run_id),
            turn_id: turn_id.map(str::to_owned),
            labels: Arc::clone(&self.labels),
        }
    }
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// An event with the time when it was emitted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Timed {
    /// Milliseconds since 1970.
    at_ms: u64,
    pub(crate) event: Event,
}

impl Timed {
    /// Creates an event that was emitted at a time in milliseconds since 1970.
    pub(crate) fn at(at_ms: u64, event: Event) -> Self {
        Self { at_ms, event }
    }

    fn time(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_millis(self.at_ms)).unwrap_or(UNIX_EPOCH)
    }
}
