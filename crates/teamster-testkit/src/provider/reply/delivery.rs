//! The delivery of a reply: gates, pauses and faults.

use std::time::Duration;

use crate::provider::failure::HttpError;

/// The delivery of a reply.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delivery {
    pub(crate) gate_before: Option<String>,
    pub(crate) delay_before: Option<Duration>,
    pub(crate) delay_between: Option<Duration>,
    pub(crate) events: Vec<DeliveryEvent>,
    pub(crate) drop_unstreamed: bool,
}

/// An event that happens after this many deltas.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryEvent {
    pub(crate) after: usize,
    pub(crate) what: DeliveryEventKind,
}

#[derive(Debug, Clone)]
pub(crate) enum DeliveryEventKind {
    Gate(String),
    Cut,
    Error(HttpError),
    Stall { ping_every: Option<Duration> },
}
