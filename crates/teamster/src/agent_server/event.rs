//! The events of a CLI's server.

use bytes::Bytes;
use teamster_agents::protocol::{CallId, Input, ServerInput};

/// An event of a server.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    Reply {
        call: CallId,
        status: u16,
        body: Bytes,
    },
    Event(Bytes),
    /// An event of the stream exceeded the maximum length.
    TooLong {
        head: Bytes,
        length: u64,
    },
    /// A call failed, or, without a call, the event stream ended.
    Unreachable {
        call: Option<CallId>,
        why: String,
    },
}

impl ServerEvent {
    /// Returns the input for the protocol. `None` if the event is not for the protocol.
    pub(crate) fn input(&self) -> Option<Input<'_>> {
        Some(Input::Server(match self {
            Self::Reply { call, status, body } => ServerInput::Reply { call: *call, status: *status, body },
            Self::Event(data) => ServerInput::Event(data),
            Self::Unreachable { call, why } => ServerInput::Unreachable { call: *call, why },
            Self::TooLong { .. } => return None,
        }))
    }
}
