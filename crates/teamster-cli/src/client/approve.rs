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
/// Without an id, the command lists the open requests. On a terminal it then reads an answer to each of them. The token needs
/// the scopes read and approve, and must be that of an approver; a token with the scope admin can answer all requests.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct ApproveArgs {
    /// The request: its id, or the start of the id of one open request
    #[arg(value_name = "ID", requires = "decision")]
    request: Option<String>,

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
    if let (Some(request), Some(decision)) = (&args.request, args.decision) {
        let id = whole_id(request, connection).await?;
        answer(&id, decision, args.message.as_deref(), connection).await?;
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

/// Returns the id of the request that starts with the typed text.
async fn whole_id(typed: &str, connection: &Connection) -> Result<String, ClientError> {
    if let Ok(id) = typed.parse::<Uuid>() {
        return Ok(id.to_string());
    }
    let (_, open) = open_requests(connection).await?;
    let ids: Vec<&str> = open.iter().map(|request| request.id.as_str()).collect();
    complete(typed, &ids).map(str::to_owned).map_err(ClientError::Usage)
}

/// Returns the only id that starts with a text.
fn complete<'a>(typed: &str, ids: &[&'a str]) -> Result<&'a str, String> {
    let typed = typed.to_lowercase();
    let found: Vec<&str> = ids.iter().copied().filter(|id| !typed.is_empty() && id.starts_with(&typed)).collect();
    match found.as_slice() {
        [id] => Ok(*id),
        [] => {
            Err(format!("no open request has an id that starts with {typed:?}: list them with teamster approve --list"))
        }
        _ => Err(format!("{} open requests have ids that start with {typed:?}: give the whole id", found.len())),
    }
}

/// What a person types means.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Answer(DecisionName, Option<String>),
    Skip,
    Quit,
    /// The possible answers are shown, after this text.
    Help(Option<String>),
}

/// The possible answers to a permission request. They are those of a chat.
const ANSWERS: &str = "\
  y       yes, this time
  a       always: allow such calls until the agent's session ends
  n       no; n WHY also tells the agent why
  s       skip the request; it stays open
  q       quit";

/// The possible answers to a question.
const ANSWERS_TO_QUESTION: &str = "\
  TEXT    the answer
  s       skip the question; it stays open
  q       quit";

/// Reads the decision of the person at the terminal.
fn choose(request: &Request) -> io::Result<Choice> {
    let is_question = is_question(request);
    let prompt = if is_question { "  your answer (s, q, ?): " } else { "  allow? (y, a, n, n WHY, s, q, ?): " };
    loop {
        let mut out = anstream::stdout();
        Printable::from(prompt).write(&mut out)?;
        out.flush()?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(Choice::Quit);
        }
        match typed(&line, is_question) {
            Typed::Answer(decision, message) => return Ok(Choice::Answer(decision, message)),
            Typed::Skip => return Ok(Choice::Skip),
            Typed::Quit => return Ok(Choice::Quit),
            Typed::Help(unknown) => {
                if let Some(unknown) = unknown {
                    printable!("  {} is no answer; possible are:", Printable::exact(&unknown)).write_line(&mut out)?;
                }
                let answers = if is_question { ANSWERS_TO_QUESTION } else { ANSWERS };
                Printable::from(answers).write_line(&mut out)?;
            }
        }
    }
}

fn typed(line: &str, is_question: bool) -> Typed {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let reason = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    match (word.to_lowercase().as_str(), reason, is_question) {
        ("q" | "quit", None, _) => Typed::Quit,
        ("s" | "skip" | "", None, _) => Typed::Skip,
        ("?", None, _) => Typed::Help(None),
        (_, _, true) => Typed::Answer(DecisionName::Allow, Some(line.to_owned())),
        ("y" | "yes", None, _) => Typed::Answer(DecisionName::Allow, None),
        ("a" | "always", None, _) => Typed::Answer(DecisionName::AllowAlways, None),
        ("n" | "no", reason, _) => Typed::Answer(DecisionName::Deny, reason),
        _ => Typed::Help(Some(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_are_those_of_a_chat_and_another_text_allows_nothing() {
        use DecisionName::{Allow, AllowAlways, Deny};
        for (line, expected) in [
            ("y\n", Typed::Answer(Allow, None)),
            ("YES", Typed::Answer(Allow, None)),
            ("a", Typed::Answer(AllowAlways, None)),
            ("n", Typed::Answer(Deny, None)),
            ("n use the test database", Typed::Answer(Deny, Some("use the test database".to_owned()))),
            ("", Typed::Skip),
            ("s", Typed::Skip),
            ("q", Typed::Quit),
            ("?", Typed::Help(None)),
            ("x", Typed::Help(Some("x".to_owned()))),
            ("y but only once", Typed::Help(Some("y but only once".to_owned()))),
        ] {
            assert_eq!(typed(line, false), expected, "{line:?}");
        }
        assert_eq!(typed("no rush", true), Typed::Answer(Allow, Some("no rush".to_owned())));
        assert_eq!((typed("s", true), typed("?", true)), (Typed::Skip, Typed::Help(None)));
    }

    #[test]
    fn only_the_start_of_one_id_is_enough() {
        let ids = ["0198a-1", "0198a-2", "0199b-1"];
        assert_eq!(complete("0199B", &ids), Ok("0199b-1"));
        assert!(complete("0198a", &ids).unwrap_err().contains("give the whole id"));
        for missing in ["", "77"] {
            assert!(complete(missing, &ids).unwrap_err().contains("teamster approve --list"), "{missing}");
        }
    }
}
