//! `teamster send`: sends a message and shows the answer.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use serde_json::json;
use uuid::Uuid;

use super::calls::{Accepted, Conversation, MessageMode, NewConversation, directory_of, whole_id};
use super::connection::{ClientError, Connection, ServerArgs};
use super::events::Events;
use super::turn::TurnDisplay;
use crate::args::{Format, Permission, StdinMode};
use crate::exit;
use crate::plan::{SystemInputs, UsageError, message_text};
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
    ///
    /// Piped standard input is appended to it: see --stdin.
    text: Option<String>,

    /// Use standard input: auto (default), read or ignore
    ///
    /// The modes are those of teamster run.
    #[arg(long, value_name = "MODE", hide_short_help = true)]
    #[arg(default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    stdin: StdinMode,

    /// Send it to this conversation
    #[arg(short, long, value_name = "ID", value_parser = whole_id)]
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
    #[arg(id = "send_output", short = 'o', long = "output", value_name = "FORMAT")]
    #[arg(default_value = "pretty", hide_default_value = true, hide_possible_values = true)]
    output: Format,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

const AFTER: &str = "\
Ctrl-C aborts the turn; a second Ctrl-C ends the command. Exit codes are those of teamster run.
The token needs the scope send, and the scope read to show the answer. Without read the command
prints the ids, as with --no-wait, and exits with 0.

Examples:
  teamster send 'What does this project do?'
  teamster send --conversation ID 'And now the docs'
  git diff | teamster send 'Review this change'";

/// How long the acceptance of a message is requested. The key makes repetitions safe.
const SEND_TIMEOUT: Duration = Duration::from_secs(8);

pub(super) async fn run(args: SendArgs, connection: &Connection) -> Result<u8, ClientError> {
    let text = message_text(args.text.clone(), args.stdin, &mut SystemInputs).map_err(|error| match error {
        UsageError::NoPrompt => ClientError::Usage("there is no message: teamster send 'TEXT'".to_owned()),
        error => ClientError::Usage(error.to_string()),
    })?;
    if text.trim().is_empty() {
        return Err(ClientError::Usage("the message is empty".to_owned()));
    }
    let (conversation, agent) = if let Some(id) = args.conversation {
        find(id, connection).await?
    } else {
        let Conversation { id, agent, .. } = connection.create_conversation(&new_conversation(&args)?).await?;
        (id, agent)
    };
    let mode = if args.steer { MessageMode::Steer } else { MessageMode::Queue };
    let key = Uuid::new_v4().to_string();
    let accepted = connection.send_message(&conversation, (&text, mode), &key, SEND_TIMEOUT).await?;
    if args.no_wait {
        return ids(&conversation, &accepted, args.output);
    }
    if args.conversation.is_none() && args.output == Format::Pretty && std::io::stdout().is_terminal() {
        write_notice(&printable!("conversation {}", Printable::exact(&conversation)));
    }
    let mut events = Events::new(connection, &conversation, accepted.seq);
    let display = TurnDisplay::new(&accepted.turn_id, &conversation, args.output, &agent);
    match display.show(&mut events, connection).await {
        // The message is accepted. A failure would cause a script to send it again.
        Err(ClientError::Refused { status: 403, detail, .. }) => {
            write_notice(&printable!(
                "the message is accepted; its answer cannot be read: {}",
                Printable::message(&detail)
            ));
            ids(&conversation, &accepted, args.output)
        }
        other => other,
    }
}

/// Returns the id and the agent of a conversation. A token that may only send cannot read the agent.
async fn find(id: Uuid, connection: &Connection) -> Result<(String, String), ClientError> {
    match connection.conversation(&id.to_string()).await {
        Ok(Conversation { id, agent, .. }) => Ok((id, agent)),
        Err(ClientError::Refused { status: 403, .. }) => Ok((id.to_string(), String::new())),
        Err(error) => Err(error),
    }
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
