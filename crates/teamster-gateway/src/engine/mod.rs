//! The engine: it accepts messages, runs their turns and records what happens.
//!
//! | module | contents |
//! |---|---|
//! | `gateway` | the gateway's interface for callers, and the state that its parts share |
//! | `start` | starts and ends its tasks |
//! | `intake` | the input of clients and channels: messages, aborts and retries |
//! | `answers` | answers to permission requests |
//! | `edits` | edits of messages that wait |
//! | `conversations` | conversations and their settings |
//! | `decisions` | the decisions about turns, as pure functions |
//! | `ending` | how the end of a turn is shown |
//! | `worker`, `slots` | claims conversations, at most so many at a time |
//! | `maintenance` | closes idle sessions, deletes old data |
//! | `leases`, `renewal` | renews leases, and stops turns that lose them |
//! | `turn` | one turn, from its claim to its end |
//! | `history` | the history for an agent whose session does not contain it |
//! | `sessions` | live sessions between turns |
//! | `log_writer` | the events of an attempt, in batches |
//! | `hub`, `stream` | new events for subscribers |

mod answers;
mod conversations;
mod decisions;
mod edits;
mod ending;
mod gateway;
mod history;
mod hub;
mod intake;
mod leases;
mod log_writer;
mod maintenance;
mod renewal;
mod running;
mod sessions;
mod slots;
mod start;
mod stream;
mod turn;
mod worker;

pub use self::answers::{AnswerResult, Caller};
pub use self::conversations::{ConversationChange, NewConversationRequest};
pub(crate) use self::conversations::{MAX_INSTRUCTIONS, MAX_METADATA, MAX_NAME};
pub(crate) use self::gateway::WeakGateway;
pub use self::gateway::{Activity, Gateway, Parts};
pub(crate) use self::history::{Span, history, one_line};
pub(crate) use self::intake::is_by_api;
pub use self::intake::{AcceptedMessage, IncomingMessage, MessageTarget};
pub use self::start::Running;
pub use self::stream::{EventStream, FeedStream, StreamError};
