//! Why a prompt or an answer was rejected.

use teamster_types::event::RequestId;
use teamster_types::request::RequestError;
use teamster_types::text::UntrustedText;

/// The maximum number of waiting turns of a session.
pub(crate) const MAX_TURNS: usize = 256;

/// The reason why a prompt was rejected. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The prompt or an attachment is invalid.
    #[error(transparent)]
    Prompt(#[from] RequestError),
    /// The maximum number of turns is waiting.
    #[error("{MAX_TURNS} turns are waiting; send again when one has started")]
    Busy,
    /// The session has ended.
    #[error("the session has ended; open another one")]
    Ended,
    /// The runtime is [shut down](crate::Runtime::shutdown), and its sessions with it.
    #[error("the runtime is shut down, and its sessions accept no more turns")]
    ShutDown,
}

/// The reason why an answer was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The request does not wait for an answer: it was answered, it expired, or it does not exist.
    #[error("the request {} does not wait for an answer: it is unknown, was answered before, or its turn has ended", request.escaped())]
    NotWaiting {
        /// The request.
        request: RequestId,
    },
    /// The request does not list the option. It still waits for an answer.
    #[error("the request {} does not list the option {}; it lists {}", request.escaped(), UntrustedText::from(option_id.as_str()).escaped(), names(listed))]
    UnknownOption {
        /// The request.
        request: RequestId,
        /// The chosen option.
        option_id: String,
        /// The ids of the listed options.
        listed: Vec<UntrustedText>,
    },
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
}

/// Formats the ids of options for an error.
fn names(listed: &[UntrustedText]) -> String {
    let names: Vec<_> = listed.iter().map(|id| id.escaped().to_string()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
