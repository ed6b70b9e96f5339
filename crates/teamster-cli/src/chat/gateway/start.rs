//! Finds the conversation of a chat in a gateway, or creates one, and starts the chat.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use tokio::task::JoinSet;

use super::conversation::GatewayConversation;
use super::history::History;
use super::turns::Turns;
use crate::args::{ChatArgs, GatewayChatArgs, JoinedConversation, NewConversationArgs, Permission};
use crate::chat::history::HistoryFile;
use crate::chat::start::Start;
use crate::client::{self, ClientError, Connection, Follower, NewConversation, directory_of};
use crate::exit;
use crate::printable::{Printable, printable};
use crate::runtime::{Threads, run_command};
use crate::signals::Signals;

/// Runs the command and returns its exit code.
pub(in crate::chat) fn main(args: ChatArgs, conversation: JoinedConversation) -> u8 {
    run_command(Threads::Workers, run(args, conversation))
}

async fn run(args: ChatArgs, conversation: JoinedConversation) -> io::Result<u8> {
    let mut signals = Signals::catch()?;
    let opened = tokio::select! {
        opened = open(&args.gateway, conversation) => opened,
        _ = signals.next() => return Ok(exit::INTERRUPTED),
    };
    let backend = match opened {
        Ok(backend) => backend,
        Err(error) => return Ok(client::report(&error)),
    };
    let files = std::env::current_dir()?;
    let start = Start {
        directory: backend.conversation.directory.as_ref().map(PathBuf::from).unwrap_or_default(),
        keys: args.keys.unwrap_or_default(),
        prompt: args.prompt.filter(|prompt| !prompt.trim().is_empty()),
        tool_output: args.conversation.common.tool_output,
        files,
    };
    let history_file = HistoryFile::open(&start.files);
    start.run(backend, &mut signals, history_file).await
}

/// Reads what the chat needs before it starts to follow the conversation.
async fn open(args: &GatewayChatArgs, conversation: JoinedConversation) -> Result<GatewayConversation, ClientError> {
    let connection = Connection::open(&args.server)?;
    let conversation = match conversation {
        JoinedConversation::New(NewConversationArgs { agent, model, permission, cwd }) => {
            let directory = cwd.as_deref().map(directory_of).transpose()?;
            let permission = permission.map(Permission::name);
            connection.create_conversation(&NewConversation { agent, model, permission, directory }).await?
        }
        JoinedConversation::Existing(id) => connection.conversation(&id.to_string()).await?,
    };
    // Requests that are closed from now on are closed by a later event.
    let earlier_requests = connection.open_requests(&conversation.id).await?;
    let server = args.server.server_option();
    Ok(GatewayConversation {
        follower: Follower::start(&connection, &conversation.id, History::start(&conversation)),
        server_option: server.map(|url| printable!(" --server {}", Printable::shell_word(url))).unwrap_or_default(),
        lost: None,
        failure: None,
        history: Some(History::of(&conversation)),
        is_partial: false,
        last_seq: 0,
        turns: Turns::default(),
        open_requests: HashMap::new(),
        earlier_requests,
        answered: HashSet::new(),
        calls: JoinSet::new(),
        unconfirmed: None,
        connection,
        conversation,
    })
}
