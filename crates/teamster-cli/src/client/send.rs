//! `teamster send`: sends a message and shows the answer.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use uuid::Uuid;

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

/// The number of times that a message is sent until the gateway confirms it. The idempotency key prevents a second
/// turn.
const ATTEMPTS: u32 = 5;

#[derive(Deserialize)]
struct Created {
    id: String,
    agent: String,
}

/// An accepted message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    message_id: String,
    turn_id: String,
    seq: u64,
}

pub(super) async fn run(args: SendArgs, connection: &Connection) -> Result<u8, ClientError> {
    let text = match args.text.as_deref() {
        Some(text) if text != "-" => text.to_owned(),
        _ => read_stdin()?,
    };
    if text.trim().is_empty() {
        return Err(ClientError::Usage("the message is empty".to_owned()));
    }
    let conversation = match args.conversation {
        Some(id) => connection.get::<Created>(&format!("v1/conversations/{id}")).await?,
        None => create(&args, connection).await?,
    };
    let mode = if args.steer { "steer" } else { "queue" };
    let accepted = accept(connection, &conversation.id, &json!({ "text": text, "mode": mode })).await?;
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

async fn create(args: &SendArgs, connection: &Connection) -> Result<Created, ClientError> {
    let permission = args.permission.map(|permission| match permission {
        Permission::ReadOnly => "read-only",
        Permission::Ask => "ask",
        Permission::Edit => "edit",
        Permission::Full => "full",
    });
    let directory = match &args.directory {
        None => None,
        Some(directory) => Some(directory.canonicalize().map_err(|error| {
            ClientError::Usage(format!("cannot use the directory {}: {error}", directory.to_string_lossy()))
        })?),
    };
    let mut body = json!({});
    let fields = [
        ("agent", args.agent.clone()),
        ("model", args.model.clone()),
        ("permission", permission.map(str::to_owned)),
        ("directory", directory.map(|directory| directory.to_string_lossy().into_owned())),
    ];
    for (name, value) in fields {
        if let (Some(value), Value::Object(object)) = (value, &mut body) {
            object.insert(name.to_owned(), value.into());
        }
    }
    connection.call(Method::POST, "v1/conversations", Some(&body), None).await
}

/// Sends a message until the gateway has confirmed it. The idempotency key prevents a second turn.
async fn accept(connection: &Connection, conversation: &str, body: &Value) -> Result<Accepted, ClientError> {
    let path = format!("v1/conversations/{conversation}/messages");
    let key = Uuid::new_v4().to_string();
    let mut attempt = 1;
    loop {
        match connection.call(Method::POST, &path, Some(body), Some(&key)).await {
            Err(error) if error.is_transient() && attempt < ATTEMPTS => {
                sleep(Duration::from_millis(500) * 2_u32.pow(attempt - 1)).await;
                attempt += 1;
            }
            other => return other,
        }
    }
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
