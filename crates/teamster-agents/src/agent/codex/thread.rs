//! Which thread has to answer.

use teamster_types::request::Conversation;

/// Which thread has to answer: an answer without its history is worse than none.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    Any,
    Only(String),
    /// A fork that goes on in its origin would change it.
    AnyBut(String),
}

impl Expected {
    pub(super) fn of(conversation: &Conversation) -> Self {
        match conversation {
            Conversation::New | Conversation::Continue => Self::Any,
            Conversation::Resume(id) => Self::Only(id.as_str().to_owned()),
            Conversation::Fork(id) => Self::AnyBut(id.as_str().to_owned()),
        }
    }

    /// What is wrong with a thread that answers.
    pub(super) fn problem(&self, thread: &str) -> Option<String> {
        match self {
            Self::Only(asked) if !asked.eq_ignore_ascii_case(thread) => {
                Some(format!("asked to resume session {asked}, but {thread} answers"))
            }
            Self::AnyBut(origin) if origin.eq_ignore_ascii_case(thread) => {
                Some(format!("asked to fork session {origin}, but it goes on itself"))
            }
            _ => None,
        }
    }
}
