//! `teamster tail`: follows a conversation.

use std::time::Instant;

use serde::Deserialize;
use teamster_gateway::event::{GatewayEvent, TurnEnd};
use uuid::Uuid;

use super::connection::{ClientError, Connection, ServerArgs};
use super::events::{Events, LogBody, LogEvent};
use super::turn::write_line;
use crate::exit;
use crate::printable::{Printable, printable};
use crate::render::Output;

/// Follow a conversation of a gateway
///
/// The command shows the messages and answers in the log of a conversation, then new ones as they happen. After a lost
/// connection, it continues after the last event.
#[derive(Debug, clap::Args)]
pub(crate) struct TailArgs {
    /// The conversation
    #[arg(value_name = "ID")]
    conversation: Uuid,

    /// Start after the event with this number
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    after: u64,

    /// Stop at the end of the log
    #[arg(long)]
    no_follow: bool,

    /// Print as: pretty (default) or ndjson
    #[arg(id = "tail_output", long = "output", value_name = "FORMAT")]
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Conversation {
    agent: String,
    last_seq: u64,
}

pub(super) async fn run(args: TailArgs, connection: &Connection) -> Result<u8, ClientError> {
    let path = format!("v1/conversations/{}", args.conversation);
    let Conversation { agent, last_seq } = connection.get(&path).await?;
    let mut events = Events::new(connection, &args.conversation.to_string(), args.after);
    let mut output = Output::of_chat(&agent, None);
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
        LogBody::Gateway(event) => match text(event) {
            Some(text) => text,
            None => return Ok(()),
        },
    };
    output.message(&text)
}

fn text(event: GatewayEvent) -> Option<Printable> {
    Some(match event {
        GatewayEvent::TurnQueued { author, text, attachments, .. } => {
            let text = Printable::join(Printable::prose(&text).lines(), "\n> ");
            let files = attachments.iter().map(|name| printable!("\n> [{}]", Printable::exact(name)));
            printable!("> {}: {}{}", Printable::exact(&author), text, Printable::join(files, ""))
        }
        GatewayEvent::TurnEdited { text } => printable!("> changed to: {}", Printable::message(&text)),
        GatewayEvent::TurnRetrying { attempt, delay_ms, code } => {
            printable!(
                "[attempt {} failed ({}); the next one starts in {} s]",
                attempt,
                Printable::exact(&code),
                delay_ms.div_ceil(1000)
            )
        }
        GatewayEvent::TurnPaused { until } => printable!("[paused until {}]", Printable::exact(&until)),
        GatewayEvent::TurnResumed => "[the pause has ended]".into(),
        GatewayEvent::TurnFinished { state: TurnEnd::Done, .. } => return None,
        GatewayEvent::TurnFinished { state: TurnEnd::Aborted, .. } => "[aborted]".into(),
        GatewayEvent::TurnFinished { error_code, error, .. } => {
            let reason = error.or(error_code).unwrap_or_else(|| "without a reason".to_owned());
            printable!("[failed: {}]", Printable::message(&reason))
        }
        GatewayEvent::PermissionAnswered { decision, by, .. } => {
            let by = by.map_or_else(Printable::default, |by| printable!(" by {}", Printable::exact(&by)));
            printable!("[permission: {}{}]", Printable::exact(&decision), by)
        }
        GatewayEvent::SessionReset { reason } => printable!("[new agent session: {}]", Printable::message(&reason)),
        GatewayEvent::DeliveryFailed { reason, .. } => printable!("[delivery failed: {}]", Printable::message(&reason)),
        GatewayEvent::ScheduleSkipped { at, .. } => printable!("[schedule skipped: {}]", Printable::exact(&at)),
        GatewayEvent::HookFailed { hook, reason } => {
            printable!("[the hook {} failed: {}]", Printable::exact(&hook), Printable::message(&reason))
        }
        _ => return None,
    })
}
