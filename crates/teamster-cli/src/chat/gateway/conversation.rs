//! The state of a conversation of a gateway.

use std::collections::{HashMap, HashSet};

use teamster::event::{Event, RequestId};
use tokio::task::JoinSet;

use super::history::History;
use super::turns::Turns;
use crate::chat::state::Request;
use crate::client::{Accepted, ClientError, Connection, Conversation, Follower};
use crate::printable::Printable;

/// A conversation of a gateway.
#[derive(Debug)]
pub(super) struct GatewayConversation {
    pub(super) connection: Connection,
    pub(super) conversation: Conversation,
    /// The option that names the gateway, for commands that a person copies. Empty for the default.
    pub(super) server_option: Printable,
    pub(super) follower: Follower,
    /// Why the gateway cannot be reached now.
    pub(super) lost: Option<Printable>,
    /// Why the conversation cannot be followed any more.
    pub(super) failure: Option<ClientError>,
    /// The events before the chat, until all of them have arrived.
    pub(super) history: Option<History>,
    /// Whether earlier turns are not shown.
    pub(super) is_partial: bool,
    /// The number of the last event that was applied.
    pub(super) last_seq: u64,
    pub(super) turns: Turns,
    /// The requests without an answer.
    pub(super) open_requests: HashMap<RequestId, Request>,
    /// Open requests that were made before the events that are read.
    pub(super) earlier_requests: Vec<Event>,
    /// The requests that were answered here.
    pub(super) answered: HashSet<RequestId>,
    pub(super) calls: JoinSet<CallResult>,
    pub(super) unconfirmed: Option<Unconfirmed>,
}

/// The result of a call.
#[derive(Debug)]
pub(super) enum CallResult {
    Sent {
        text: String,
        key: String,
        result: Result<Accepted, ClientError>,
    },
    Aborted {
        turn: String,
        result: Result<(), ClientError>,
    },
    Answered(RequestId, Result<(), ClientError>),
    /// The conversation was changed; the text names the change.
    Changed(Printable, Result<Conversation, ClientError>),
}

/// A message whose acceptance was not confirmed. If it is sent again, its key prevents a second turn.
#[derive(Clone, Debug)]
pub(super) struct Unconfirmed {
    pub(super) text: String,
    pub(super) key: String,
}
