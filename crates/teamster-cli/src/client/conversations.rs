//! `teamster conversations`: lists the conversations of a gateway, and shows one.

use std::io;

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::connection::{ClientError, Connection, ServerArgs};
use crate::exit;
use crate::printable::{Printable, printable};
use crate::render::write_document;

/// List the conversations of a gateway
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ConversationsArgs {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    list: ListArgs,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List conversations, the newest first (default)
    List(ListArgs),
    /// Print one conversation
    Show {
        /// The conversation
        #[arg(value_name = "ID", value_parser = super::calls::whole_id)]
        conversation: Uuid,

        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Debug, Default, clap::Args)]
struct ListArgs {
    /// List those in a state: idle, queued, running, waiting, paused
    #[arg(long, value_name = "STATE", hide_possible_values = true)]
    #[arg(value_parser = ["idle", "queued", "running", "waiting", "paused"])]
    state: Option<String>,

    /// List those with this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// List those of this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,

    /// List those with this text in the title or a message
    #[arg(short, long = "query", value_name = "TEXT")]
    query: Option<String>,

    #[arg(short = 'n', long, value_name = "N", default_value = "20", hide_default_value = true)]
    #[arg(help = "List at most this number of conversations [20]")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Value>,
    next_cursor: Option<String>,
}

/// The size of a page.
const PAGE: u32 = 100;

pub(super) async fn run(args: ConversationsArgs, connection: &Connection) -> Result<u8, ClientError> {
    match args.action {
        Some(Action::Show { conversation, json }) => show(conversation, json, connection).await,
        Some(Action::List(args)) => list(&args, connection).await,
        None => list(&args.list, connection).await,
    }
}

async fn list(args: &ListArgs, connection: &Connection) -> Result<u8, ClientError> {
    let mut items = Vec::new();
    let mut cursor = None;
    let wanted = usize::try_from(args.limit).unwrap_or(usize::MAX);
    while items.len() < wanted {
        let page: Page = connection.get(&path(args, wanted - items.len(), cursor.as_deref())).await?;
        items.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    items.truncate(wanted);
    let written = if args.json {
        write_document(&json!({ "items": items }).to_string(), &mut io::stdout())
    } else {
        write_table(&items)
    };
    written.map_err(ClientError::Output).map(|()| exit::SUCCESS)
}

fn path(args: &ListArgs, rest: usize, cursor: Option<&str>) -> String {
    let limit = rest.min(PAGE as usize).to_string();
    let filters = [
        ("limit", Some(limit.as_str())),
        ("state", args.state.as_deref()),
        ("agent", args.agent.as_deref()),
        ("channel", args.channel.as_deref()),
        ("q", args.query.as_deref()),
        ("cursor", cursor),
    ];
    let given = filters.into_iter().filter_map(|(name, value)| Some((name, value?)));
    // The paths of the API are relative to the server's URL, so the scheme and host here do not matter.
    match reqwest::Url::parse_with_params("http://gateway/v1/conversations", given) {
        Ok(url) => format!("v1/conversations?{}", url.query().unwrap_or_default()),
        Err(_) => "v1/conversations".to_owned(),
    }
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn write_table(items: &[Value]) -> io::Result<()> {
    let mut out = anstream::stdout();
    let row = |cells: [Printable; 6]| {
        let [id, state, channel, agent, created, title] = cells;
        printable!("{:<36}  {:<8}  {:<8}  {:<10}  {:<20}  {}", id, state, channel, agent, created, title)
    };
    if items.is_empty() {
        return Printable::from("no conversation matches").write_line(&mut out);
    }
    row(["id", "state", "channel", "agent", "created", "title"].map(Printable::from)).write_line(&mut out)?;
    for item in items {
        let cell = |name: &str| Printable::exact(text(item, name));
        let created = Printable::exact(text(item, "createdAt").get(..19).unwrap_or_default());
        let cells = [cell("id"), cell("state"), cell("channel"), cell("agent"), created, cell("title")];
        row(cells).write_line(&mut out)?;
    }
    Ok(())
}

async fn show(id: Uuid, is_json: bool, connection: &Connection) -> Result<u8, ClientError> {
    let item: Value = connection.get(&format!("v1/conversations/{id}")).await?;
    let written = if is_json {
        write_document(&item.to_string(), &mut io::stdout())
    } else {
        let mut out = anstream::stdout();
        item.as_object().into_iter().flatten().try_for_each(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            printable!("{:<14} {}", Printable::exact(name), Printable::exact(&value)).write_line(&mut out)
        })
    };
    written.map_err(ClientError::Output).map(|()| exit::SUCCESS)
}
