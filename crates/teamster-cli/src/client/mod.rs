//! The shell clients of a gateway's API.
//!
//! - [`connection`]: where the gateway is, its token, and how its API is called; [`calls`]: the calls.
//! - [`events`]: the events of a conversation, with reconnection; [`follower`]: a task that reads them.
//! - [`turn`]: shows the events of one turn as `run` does; [`wording`]: the gateway's own events as text.
//! - [`mod@send`], [`mod@conversations`], [`mod@tail`], [`mod@approve`]: the commands. `teamster chat` is in
//!   [`crate::chat`].

mod approve;
mod calls;
mod connection;
mod conversations;
mod events;
mod follower;
mod send;
mod tail;
mod turn;
mod wording;

pub(crate) use approve::ApproveArgs;
pub(crate) use conversations::ConversationsArgs;
pub(crate) use send::SendArgs;
pub(crate) use tail::TailArgs;

pub(crate) use calls::{Accepted, Conversation, MessageMode, NewConversation, RequestAnswer, directory_of};
pub(crate) use connection::{ClientError, Connection, ServerArgs};
#[cfg(test)]
pub(crate) use events::read_event;
pub(crate) use events::{Change, LogBody, LogEvent};
pub(crate) use follower::Follower;
pub(crate) use wording::describe;

use crate::exit;
use crate::printable::Printable;
use crate::render::write_error;
use crate::runtime::{Threads, run_command};

/// Runs `teamster send`.
pub(crate) fn send(args: SendArgs) -> u8 {
    with_connection(args.server.clone(), async |connection| send::run(args, connection).await)
}

/// Runs `teamster conversations`.
pub(crate) fn conversations(args: ConversationsArgs) -> u8 {
    with_connection(args.server.clone(), async |connection| conversations::run(args, connection).await)
}

/// Runs `teamster tail`.
pub(crate) fn tail(args: TailArgs) -> u8 {
    with_connection(args.server.clone(), async |connection| tail::run(args, connection).await)
}

/// Runs `teamster approve`.
pub(crate) fn approve(args: ApproveArgs) -> u8 {
    with_connection(args.server.clone(), async |connection| approve::run(args, connection).await)
}

fn with_connection(server: ServerArgs, command: impl AsyncFnOnce(&Connection) -> Result<u8, ClientError>) -> u8 {
    run_command(Threads::Main, async move {
        let result = match Connection::open(&server) {
            Ok(connection) => command(&connection).await,
            Err(error) => Err(error),
        };
        Ok(result.unwrap_or_else(|error| report(&error)))
    })
}

/// Prints an error. Returns the exit code.
pub(crate) fn report(error: &ClientError) -> u8 {
    if let ClientError::Output(source) = error
        && source.kind() == std::io::ErrorKind::BrokenPipe
    {
        return exit::NO_READER;
    }
    write_error(&mut anstream::stderr(), &Printable::error(error), error.hint().as_ref());
    match error {
        ClientError::NoToken { .. } | ClientError::NoTokenFor { .. } | ClientError::Usage(_) => exit::USAGE,
        _ => exit::FAILURE,
    }
}
