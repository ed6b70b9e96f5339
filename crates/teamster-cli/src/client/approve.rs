//! `teamster approve`: answers permission requests and questions of agents.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::connection::{ClientError, Connection, ServerArgs};
use crate::exit;
use crate::printable::{Printable, printable};
use crate::render::{width_of_stdout, write_document, write_notice};

/// Answer permission requests of agents in a gateway
///
/// Without an id, the command lists the open requests. On a terminal it then reads an answer to each of them.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct ApproveArgs {
    /// The request
    #[arg(value_name = "ID", requires = "decision")]
    request: Option<Uuid>,

    /// allow, allow-always (for the agent's session) or deny
    #[arg(value_name = "DECISION", hide_possible_values = true)]
    decision: Option<DecisionName>,

    /// Send a reason to the agent, or the answer to its question
    #[arg(long, value_name = "TEXT", requires = "request")]
    message: Option<String>,

    /// List the open requests only
    #[arg(long, conflicts_with = "request")]
    list: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pub(super) server: ServerArgs,
}

const AFTER: &str = "\
Examples:
  teamster approve
  teamster approve 0198f4d2-7f7c-7c2e-9a43-0f2f5c1d9e11 allow
  teamster approve 0198f4d2-7f7c-7c2e-9a43-0f2f5c1d9e11 deny --message 'Use the test database'";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DecisionName {
    Allow,
    AllowAlways,
    Deny,
}

impl DecisionName {
    const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowAlways => "allow_always",
            Self::Deny => "deny",
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Request>,
    next_cursor: Option<String>,
}

/// An open request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    id: String,
    conversation_id: String,
    request: Value,
    #[serde(default)]
    deadline: Option<String>,
}

/// What a person decided.
enum Choice {
    Answer(DecisionName, Option<String>),
    Skip,
    Quit,
}

pub(super) async fn run(args: ApproveArgs, connection: &Connection) -> Result<u8, ClientError> {
    if let (Some(request), Some(decision)) = (args.request, args.decision) {
        answer(&request.to_string(), decision, args.message.as_deref(), connection).await?;
        return Ok(exit::SUCCESS);
    }
    let (values, open) = open_requests(connection).await?;
    if args.json {
        let written = write_document(&json!({ "items": values }).to_string(), &mut io::stdout());
        return written.map_err(ClientError::Output).map(|()| exit::SUCCESS);
    }
    let mut out = anstream::stdout();
    if open.is_empty() {
        let written = Printable::from("no agent waits for an answer").write_line(&mut out);
        return written.map_err(ClientError::Output).map(|()| exit::SUCCESS);
    }
    let is_interactive = !args.list && io::stdin().is_terminal() && io::stdout().is_terminal();
    for request in &open {
        summary(request).write_line(&mut out).map_err(ClientError::Output)?;
        if !is_interactive {
            continue;
        }
        match choose(request).map_err(ClientError::Output)? {
            Choice::Answer(decision, message) => {
                // Another person may have answered meanwhile; the others are still open.
                match answer(&request.id, decision, message.as_deref(), connection).await {
                    Err(error @ ClientError::Refused { status: 403 | 404 | 409, .. }) => {
                        write_notice(&Printable::error(&error));
                    }
                    other => other?,
                }
            }
            Choice::Skip => {}
            Choice::Quit => break,
        }
    }
    Ok(exit::SUCCESS)
}

/// Returns the open requests, as documents and as far as they are shown.
async fn open_requests(connection: &Connection) -> Result<(Vec<Value>, Vec<Request>), ClientError> {
    let (mut values, mut requests) = (Vec::new(), Vec::new());
    let mut path = "v1/permission-requests?state=open&limit=100".to_owned();
    loop {
        let page: Value = connection.get(&path).await?;
        let Page { items, next_cursor } = connection.read(page.clone())?;
        requests.extend(items);
        values.extend(page.get("items").and_then(Value::as_array).into_iter().flatten().cloned());
        let Some(cursor) = next_cursor else { return Ok((values, requests)) };
        path = format!("v1/permission-requests?state=open&limit=100&cursor={cursor}");
    }
}

async fn answer(
    id: &str,
    decision: DecisionName,
    message: Option<&str>,
    connection: &Connection,
) -> Result<(), ClientError> {
    let mut body = json!({ "decision": decision.name() });
    if let (Some(message), Value::Object(body)) = (message, &mut body) {
        body.insert("message".to_owned(), message.into());
    }
    let path = format!("v1/permission-requests/{id}/answer");
    connection.call::<serde::de::IgnoredAny>(Method::POST, &path, Some(&body), None).await?;
    let done = match decision {
        DecisionName::Allow => "allowed",
        DecisionName::AllowAlways => "allowed for the rest of the session",
        DecisionName::Deny => "denied",
    };
    printable!("{} {}", Printable::exact(id), done).write_line(&mut anstream::stdout()).map_err(ClientError::Output)
}

fn is_question(request: &Request) -> bool {
    request.request.get("type").and_then(Value::as_str) == Some("question")
}

/// Returns the lines of a request.
fn summary(request: &Request) -> Printable {
    let text = |name: &str| request.request.get(name).and_then(Value::as_str).unwrap_or_default();
    let what = if is_question(request) {
        let questions = request.request.get("questions").and_then(Value::as_array).into_iter().flatten();
        let texts = questions.filter_map(|question| question.get("text").and_then(Value::as_str));
        printable!("asks: {}", Printable::message(&texts.collect::<Vec<_>>().join(" ")))
    } else {
        let input = request.request.get("input").map(Value::to_string).unwrap_or_default();
        printable!("wants to use {} {}", Printable::exact(text("toolName")), Printable::exact(&input))
    };
    let until = request
        .deadline
        .as_deref()
        .map_or_else(Printable::default, |deadline| printable!(" until {}", Printable::exact(deadline)));
    let head = printable!(
        "{}  conversation {}{}",
        Printable::exact(&request.id),
        Printable::exact(&request.conversation_id),
        until
    );
    printable!("{}\n  {}", head, what.wrapped(width_of_stdout().saturating_sub(2), 2))
}

/// Reads the decision of the person at the terminal.
fn choose(request: &Request) -> io::Result<Choice> {
    let is_question = is_question(request);
    let prompt = if is_question {
        "  your answer (empty: skip, q: quit): "
    } else {
        "  [a]llow, allow al[w]ays, [d]eny, [s]kip, [q]uit: "
    };
    loop {
        let mut out = anstream::stdout();
        Printable::from(prompt).write(&mut out)?;
        out.flush()?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(Choice::Quit);
        }
        match (line.trim(), is_question) {
            ("q" | "quit", _) => return Ok(Choice::Quit),
            ("", true) | ("s" | "skip" | "", false) => return Ok(Choice::Skip),
            (text, true) => return Ok(Choice::Answer(DecisionName::Allow, Some(text.to_owned()))),
            ("a" | "allow", _) => return Ok(Choice::Answer(DecisionName::Allow, None)),
            ("w" | "always", _) => return Ok(Choice::Answer(DecisionName::AllowAlways, None)),
            ("d" | "deny", _) => return Ok(Choice::Answer(DecisionName::Deny, None)),
            _ => {}
        }
    }
}
