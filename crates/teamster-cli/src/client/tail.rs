//! `teamster tail`: follows a conversation.

use std::time::Instant;

use uuid::Uuid;

use super::calls::Conversation;
use super::connection::{ClientError, Connection, ServerArgs};
use super::events::{Events, LogBody, LogEvent};
use super::turn::write_line;
use super::wording;
use crate::exit;
use crate::render::{Hints, Output};

/// Follow a conversation of a gateway
///
/// The command shows the messages and answers in the log of a conversation, then new ones as they happen. After a lost
/// connection, it continues after the last event.
///
/// The token needs the scope read.
#[derive(Debug, clap::Args)]
pub(crate) struct TailArgs {
    /// The conversation
    #[arg(value_name = "ID", value_parser = super::calls::whole_id)]
    conversation: Uuid,

    /// Start after the event with this number
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    after: u64,

    /// Stop at the end of the log
    #[arg(long)]
    no_follow: bool,

    /// Print as: pretty (default) or ndjson
    #[arg(id = "tail_output", short = 'o', long = "output", value_name = "FORMAT")]
    #[arg(default_value = "pretty", hide_default_value = true, hide_possible_values = true)]
    output: TailFormat,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum TailFormat {
    Pretty,
    Ndjson,
}

pub(super) async fn run(args: TailArgs, connection: &Connection) -> Result<u8, ClientError> {
    let Conversation { agent, last_seq, .. } = connection.conversation(&args.conversation.to_string()).await?;
    let mut events = Events::new(connection, &args.conversation.to_string(), args.after);
    let mut output = Output::of_chat(&agent, None).with_hints(Hints::Gateway { conversation: None });
    while !args.no_follow || events.last() < last_seq {
        let event = events.next().await?;
        match args.output {
            TailFormat::Ndjson => write_line(&event.json),
            TailFormat::Pretty => show(event, &mut output),
        }
        .map_err(ClientError::Output)?;
    }
    Ok(exit::SUCCESS)
}

/// Shows an event for people.
fn show(event: LogEvent, output: &mut Output) -> std::io::Result<()> {
    let text = match event.event {
        LogBody::Agent(event) => return output.event(&event, Instant::now()),
        LogBody::Gateway(event) => match wording::describe(event) {
            Some(text) => text,
            None => return Ok(()),
        },
    };
    output.message(&text)
}
