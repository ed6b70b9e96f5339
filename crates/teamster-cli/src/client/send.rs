//! `teamster send`: sends a message and shows the answer.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use serde_json::json;
use uuid::Uuid;

use super::calls::{Accepted, MessageMode, NewConversation, directory_of};
use super::connection::{ClientError, Connection, ServerArgs};
use super::events::Events;
use super::turn::TurnDisplay;
use crate::args::{Format, Permission};
use crate::exit;
use crate::plan::{Inputs as _, SystemInputs};
use crate::printable::{Printable, printable};
use crate::render::write_notice;

/// Send a message to a gateway and show the answer
///
/// The message is durable when the gateway has accepted it. If the gateway restarts, the command waits for it and shows
/// the rest of the answer. Without --conversation the command creates a conversation.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct SendArgs {
    /// The message; read from stdin if absent or -
    text: Option<String>,

    /// Send it to this conversation
    #[arg(short, long, value_name = "ID")]
    conversation: Option<Uuid>,

    /// Use this agent in the new conversation
    #[arg(short, long, value_name = "NAME", conflicts_with = "conversation")]
    agent: Option<String>,

    /// Use this model in the new conversation
    #[arg(short, long, value_name = "NAME", conflicts_with = "conversation")]
    model: Option<String>,

    /// Set what the agent may do in the new conversation
    #[arg(long, value_name = "MODE", conflicts_with = "conversation")]
    permission: Option<Permission>,

    /// Use this working directory in the new conversation
    #[arg(short = 'C', long = "cwd", value_name = "DIR", conflicts_with = "conversation", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,

    /// Send it into the running turn, if the agent can accept it
    #[arg(long)]
    steer: bool,

    /// Do not wait for the answer; print the ids
    #[arg(long)]
    no_wait: bool,

    /// Print as: pretty (default), text, ndjson or json
    #[arg(id = "send_output", long = "output", value_name = "FORMAT")]
    #[arg(default_value = "pretty", hide_default_value = true, hide_possible_values = true)]
    output: Format,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

const AFTER: &str = "\
Ctrl-C aborts the turn; a second Ctrl-C ends the command. Exit codes are those of teamster run.

Examples:
  teamster send 'What does this project do?'
  teamster send --conversation ID 'And now the docs'
  git diff | teamster send --output json -";

/// How long the acceptance of a message is requested. The key makes repetitions safe.
const SEND_TIMEOUT: Duration = Duration::from_secs(8);

pub(super) async fn run(args: SendArgs, connection: &Connection) -> Result<u8, ClientError> {
    let text = match args.text.as_deref() {
        Some(text) if text != "-" => text.to_owned(),
        _ => read_stdin()?,
    };
    if text.trim().is_empty() {
        return Err(ClientError::Usage("the message is empty".to_owned()));
    }
    let conversation = match args.conversation {
        Some(id) => connection.conversation(&id.to_string()).await?,
        None => connection.create_conversation(&new_conversation(&args)?).await?,
    };
    let mode = if args.steer { MessageMode::Steer } else { MessageMode::Queue };
    let key = Uuid::new_v4().to_string();
    let accepted = connection.send_message(&conversation.id, (&text, mode), &key, SEND_TIMEOUT).await?;
    if args.no_wait {
        return ids(&conversation.id, &accepted, args.output);
    }
    if args.conversation.is_none() && args.output == Format::Pretty && std::io::stdout().is_terminal() {
        write_notice(&printable!("conversation {}", Printable::exact(&conversation.id)));
    }
    let mut events = Events::new(connection, &conversation.id, accepted.seq);
    TurnDisplay::new(&accepted.turn_id, args.output, &conversation.agent).show(&mut events, connection).await
}

fn read_stdin() -> Result<String, ClientError> {
    let bytes = SystemInputs.stdin(Some(Duration::from_mins(5)));
    let bytes = bytes.map_err(|error| ClientError::Usage(format!("cannot read standard input: {error}")))?;
    String::from_utf8(bytes).map_err(|_| ClientError::Usage("standard input is not UTF-8".to_owned()))
}

fn new_conversation(args: &SendArgs) -> Result<NewConversation, ClientError> {
    Ok(NewConversation {
        agent: args.agent.clone(),
        model: args.model.clone(),
        permission: args.permission.map(Permission::name),
        directory: args.directory.as_deref().map(directory_of).transpose()?,
    })
}

fn ids(conversation: &str, accepted: &Accepted, output: Format) -> Result<u8, ClientError> {
    let Accepted { message_id, turn_id, seq } = accepted;
    let written = if matches!(output, Format::Json | Format::Ndjson) {
        let document =
            json!({ "conversationId": conversation, "messageId": message_id, "turnId": turn_id, "seq": seq });
        crate::render::write_document(&document.to_string(), &mut std::io::stdout())
    } else {
        let text = printable!("conversation {}\nturn {}", Printable::exact(conversation), Printable::exact(turn_id));
        text.write_line(&mut anstream::stdout())
    };
    written.map_err(ClientError::Output).map(|()| exit::SUCCESS)
}
