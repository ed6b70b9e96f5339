//! The thread of a run: its id, and the check of the thread that answers.

use super::error::unsupported;
use teamster_types::event::SessionId;
use teamster_types::request::{Conversation, RequestError};

/// Returns the id of a thread in lower case. The CLI would use any other text as a thread's name, and start a new thread if no
/// thread has this name.
pub(super) fn parse_id(option: &'static str, id: &SessionId) -> Result<String, RequestError> {
    let id = id.as_str();
    let is_uuid = id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if is_uuid { Ok(id.to_ascii_lowercase()) } else { Err(unsupported(option, "a session id of this agent is a UUID")) }
}
/// The thread that must answer. An answer without its history would be wrong.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    Any,
    Only(String),
    /// A fork that continues in its origin would change it.
    AnyBut(String),
}

impl Expected {
    pub(super) fn of(conversation: &Conversation) -> Self {
        match conversation {
            Conversation::New | Conversation::Continue | Conversation::ForkNewest => Self::Any,
            Conversation::Resume(id) => Self::Only(id.as_str().to_owned()),
            Conversation::Fork(id) => Self::AnyBut(id.as_str().to_owned()),
        }
    }

    /// Returns what is wrong with the thread that answers.
    pub(super) fn problem(&self, thread: &str) -> Option<String> {
        match self {
            Self::Only(asked) if !asked.eq_ignore_ascii_case(thread) => {
                Some(format!("requested to resume session {asked}, but {thread} answers"))
            }
            Self::AnyBut(origin) if origin.eq_ignore_ascii_case(thread) => {
                Some(format!("requested to fork session {origin}, but it continues itself"))
            }
            _ => None,
        }
    }
}
