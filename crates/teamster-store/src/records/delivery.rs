//! Deliveries: items to show in a channel.

use std::time::Duration;

use super::conversation::ChatAddress;
use crate::ids::{ConversationId, DeliveryId, Epoch, Json, Timestamp, TurnId, WorkerId};

/// The longest time that a delivery waits to be sent again. If a delivery would wait longer, a wrong clock has set its
/// time, and it can be claimed at once.
pub const LONGEST_DELIVERY_DELAY: Duration = Duration::from_hours(24);

/// An item to show in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// Its id, if its key is new.
    pub id: DeliveryId,
    /// A key from turn, kind and part. A second delivery with the same key is not added.
    pub key: String,
    /// Where to show it.
    pub address: ChatAddress,
    /// Its conversation.
    pub conversation: Option<ConversationId>,
    /// Its turn.
    pub turn: Option<TurnId>,
    /// What to show.
    pub body: Json,
    /// It is not sent before this time.
    pub not_before: Timestamp,
}

/// A delivery in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// Its key.
    pub key: String,
    /// Where to show it.
    pub address: ChatAddress,
    /// Its conversation.
    pub conversation: Option<ConversationId>,
    /// Its turn.
    pub turn: Option<TurnId>,
    /// What to show.
    pub body: Json,
    /// Its state.
    pub state: DeliveryState,
    /// The number of claims.
    pub attempts: u32,
    /// It is not sent before this time.
    pub not_before: Timestamp,
    /// The parts whose sending was started, in order.
    pub parts: Vec<DeliveryPart>,
    /// The last error.
    pub error: Option<String>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeliveryState {
    /// It waits.
    Pending,
    /// A worker sends it.
    Sending,
    /// The service has confirmed it.
    Sent,
    /// It was given up. A caller may queue it again.
    Failed,
    /// It is unknown whether the service has it. A caller may queue it again.
    Unknown,
}

/// A part of a delivery: one call to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryPart {
    /// Its number, starting at 0.
    pub index: u32,
    /// Whether the service has it.
    pub state: PartState,
}

/// Whether the service has a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartState {
    /// The call was started, and its outcome is unknown.
    Started,
    /// The service has confirmed it, with its own id of the message.
    Sent(Option<String>),
}

/// A worker's request for deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryClaim {
    /// The worker.
    pub worker: WorkerId,
    /// How long the lease lasts without a renewal.
    pub lease_for: Duration,
    /// The channels that this worker serves.
    pub channels: Vec<String>,
    /// The largest number of deliveries.
    pub limit: u32,
}

/// The exclusive right to send a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryLease {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The number of the claim.
    pub epoch: Epoch,
}

/// A claimed delivery. It is the first of its chat that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// The lease.
    pub lease: DeliveryLease,
    /// When the lease expires.
    pub expires_at: Timestamp,
    /// The delivery. A part in the state `Started` has an unknown outcome: check with the service.
    pub delivery: Delivery,
}

/// A step of a delivery. It is durable when the call returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryStep {
    /// Extends the lease.
    Renew(Duration),
    /// The call for this part starts now.
    PartStarted(u32),
    /// The service has confirmed this part, with its own id of the message.
    PartSent(u32, Option<String>),
    /// The service does not have this part.
    PartNotSent(u32),
    /// All parts are confirmed.
    Sent,
    /// The delivery has failed and is sent again at this time or later.
    Retry(Timestamp, String),
    /// The service was not called. The delivery is sent at this time or later, and the attempt is not counted.
    Postpone(Timestamp),
    /// The service can send nothing now.
    Wait {
        /// The delivery is sent at this time or later.
        at: Timestamp,
        /// The reason.
        error: String,
        /// The number of its attempts from now on.
        attempts: u32,
    },
    /// The delivery is given up.
    Failed(String),
    /// The outcome is unknown, and the service cannot be asked.
    Unknown(String),
}

/// Which deliveries are listed. `None` does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// The state.
    pub state: Option<DeliveryState>,
    /// The conversation.
    pub conversation: Option<ConversationId>,
    /// The turn.
    pub turn: Option<TurnId>,
}

impl DeliveryState {
    /// Returns its name in errors.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "being sent",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}
