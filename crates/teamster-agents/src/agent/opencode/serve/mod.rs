//! OpenCode by its own server (`opencode serve`): what it says as it says it, subagents and requests included.
//!
//! A run is one turn of that form; a session is many on one server. Order: the CLI says where its server is; a session is
//! made, found or forked; its events are read from then on; the prompt is sent; the turn ends when the session is idle. The server
//! does not exit by itself, so that it is ended when there is no more to do.

mod calls;
mod dialog;
mod events;
mod opening;
mod prompt;
mod steering;
mod stream;
mod turn;
mod voices;
mod wire;

pub(super) use calls::is_session_id;
pub(super) use opening::not_found;
pub(super) use stream::Stream;
