//! The sessions and the connections of the gateway, as data.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

/// What the server does to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Op 7: connect again.
    Reconnect,
    /// Op 9: the session is invalid, or can be resumed.
    Invalid(bool),
    /// Op 1: send a heartbeat.
    Heartbeat,
    /// Close with a code.
    Close(u16),
    /// Cut without a close.
    Cut,
    /// Send a text.
    Raw(String),
}

/// The sessions, by their ids.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) by_id: BTreeMap<String, Session>,
    pub(super) started: usize,
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) intents: u64,
    pub(super) is_valid: bool,
    /// The events; the first one has the number 1.
    pub(super) log: Vec<(String, Value)>,
}

/// The connections, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) open: BTreeMap<u64, Connection>,
    pub(super) opened: u64,
    pub(super) identified: usize,
    pub(super) resumed: usize,
    pub(super) heartbeats: usize,
    /// The last code of a close by the client.
    pub(super) closed_with: Option<u16>,
    /// Whether heartbeats get no answer.
    pub(super) is_mute: bool,
    /// What follows the next resumes, instead of a session.
    pub(super) on_resume: VecDeque<Order>,
    /// What follows the next identifications, instead of a session.
    pub(super) on_identify: VecDeque<Order>,
}

/// A connection.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) session: Option<String>,
    /// The number of events that were sent.
    pub(super) sent: usize,
    pub(super) orders: VecDeque<Order>,
}
