//! The receiver of the webhook. It fails in each way in which programs fail, and recognizes repeated items by their ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use teamster_channel::signature::{ID_HEADER, SIGNATURE_HEADER, SignedMessage, TIMESTAMP_HEADER};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::plan::random;
use crate::webhook::{self, Prompt};

/// What the receiver does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// Processes the item and confirms it.
    Confirm,
    /// Answers with this head, and has processed nothing.
    Refuse(&'static str),
    /// Processes the item, and fails then.
    ProcessAndFail,
    /// Never answers, with or without having processed the item.
    Hang { processed: bool },
    /// Resets the connection, with or without having processed the item.
    Reset { processed: bool },
}

/// Fates with their frequencies.
pub(crate) type Fates = &'static [(Fate, u64)];

/// All fates. Those that take a second are rare.
pub(crate) const ALL: Fates = &[
    (Fate::Confirm, 140),
    (Fate::Refuse("500 Internal Server Error"), 8),
    (Fate::Refuse("503 Service Unavailable"), 8),
    (Fate::Refuse("408 Request Timeout"), 2),
    (Fate::Refuse("429 Too Many Requests"), 6),
    (Fate::Refuse("429 Too Many Requests\r\nretry-after: 0"), 4),
    (Fate::Refuse("429 Too Many Requests\r\nretry-after: 1"), 2),
    (Fate::ProcessAndFail, 8),
    (Fate::Hang { processed: true }, 2),
    (Fate::Hang { processed: false }, 2),
    (Fate::Reset { processed: true }, 9),
    (Fate::Reset { processed: false }, 9),
];

/// The fates that take no time.
pub(crate) const QUICK: Fates = &[
    (Fate::Confirm, 20),
    (Fate::Refuse("500 Internal Server Error"), 1),
    (Fate::ProcessAndFail, 1),
    (Fate::Reset { processed: true }, 1),
];

/// An item that the receiver has processed.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) body: Value,
    /// How often the item was processed: once more for each repeat.
    pub(crate) times: u32,
    is_confirmed: bool,
}

/// What the receiver has got.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// In the order in which they were first processed.
    pub(crate) items: Vec<Item>,
    pub(crate) requests: u64,
    /// What the gateway must not do.
    pub(crate) problems: Vec<String>,
    by_id: HashMap<String, usize>,
    last_of_chat: HashMap<String, usize>,
}

/// A running receiver.
pub(crate) struct Receiver {
    pub(crate) url: String,
    received: Arc<Mutex<Received>>,
    task: JoinHandle<()>,
}

/// What the connections of a receiver share.
#[derive(Clone)]
struct Shared {
    received: Arc<Mutex<Received>>,
    prompts: UnboundedSender<Prompt>,
    fates: Fates,
}

/// A request of the gateway.
struct Request {
    head: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Receiver {
    /// Starts a receiver. It passes on the permission requests that it gets.
    pub(crate) async fn start(fates: Fates) -> (Self, UnboundedReceiver<Prompt>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("its address"));
        let received = Arc::new(Mutex::new(Received::default()));
        let (prompts, shown) = unbounded_channel();
        let shared = Shared { received: Arc::clone(&received), prompts, fates };
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        (Self { url, received, task }, shown)
    }

    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn fate(fates: Fates) -> Fate {
    let mut number = random(fates.iter().map(|(_, weight)| weight).sum());
    for (fate, weight) in fates {
        if number < *weight {
            return *fate;
        }
        number -= weight;
    }
    Fate::Confirm
}

async fn serve(mut stream: TcpStream, shared: Shared) {
    // The gateway may be killed before it has sent all of it.
    let Some(request) = read(&mut stream).await else { return };
    let fate = fate(shared.fates);
    {
        let mut received = shared.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.requests += 1;
        let processed = match fate {
            Fate::Confirm | Fate::ProcessAndFail => true,
            Fate::Hang { processed } | Fate::Reset { processed } => processed,
            Fate::Refuse(_) => false,
        };
        let is_confirmed = matches!(fate, Fate::Confirm);
        match received.take(&request, processed, is_confirmed) {
            // The task that answers ends with the test.
            Ok(prompt) => _ = prompt.map(|prompt| shared.prompts.send(prompt)),
            Err(problem) => received.problems.push(problem),
        }
    }
    let head = match fate {
        Fate::Confirm => "200 OK",
        Fate::Refuse(head) => head,
        Fate::ProcessAndFail => "500 Internal Server Error",
        Fate::Hang { .. } => {
            // Ends when the gateway closes the connection.
            while matches!(stream.read(&mut [0; 64]).await, Ok(1..)) {}
            return;
        }
        Fate::Reset { .. } => {
            _ = stream.set_zero_linger();
            return;
        }
    };
    let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    _ = stream.write_all(answer.as_bytes()).await;
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 8192];
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let headers: HashMap<String, String> = head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length: usize = headers.get("content-length")?.parse().ok()?;
        if let Some(body) = bytes.get(end + 4..end + 4 + length) {
            return Some(Request { body: body.to_vec(), head, headers });
        }
    }
}

impl Received {
    /// Checks a request, and processes its item if `processed`. Returns a permission request that is new.
    fn take(&mut self, request: &Request, processed: bool, is_confirmed: bool) -> Result<Option<Prompt>, String> {
        let header = |name: &str| request.headers.get(name).map_or("", String::as_str);
        let (id, timestamp, signatures) = (header(ID_HEADER), header(TIMESTAMP_HEADER), header(SIGNATURE_HEADER));
        let message = SignedMessage { id, timestamp, signatures, body: &request.body };
        let window = Duration::from_secs(30);
        let verified = webhook::secret().verify(&message, webhook::unix_seconds(), window, window);
        verified.map_err(|error| format!("{id}: {error}"))?;
        if !request.head.starts_with("POST /hook HTTP/1.1") {
            return Err(format!("{id}: the request is {:?}", request.head));
        }
        let body: Value = serde_json::from_slice(&request.body).map_err(|error| format!("{id}: {error}"))?;
        let target = &body["target"];
        let (Some(chat), Some(thread)) = (target["chat"].as_str(), target["thread"].as_str()) else {
            return Err(format!("{id} has no target: {body}"));
        };
        if target["channel"] != webhook::CHANNEL || body["mayBeRepeat"] != false || body["parts"] != 1 {
            return Err(format!("{id} is wrong: {body}"));
        }
        self.check_order(id, chat, &body)?;
        if !processed {
            return Ok(None);
        }
        if let Some(item) = self.by_id.get(id).and_then(|at| self.items.get_mut(*at)) {
            item.times += 1;
            item.is_confirmed |= is_confirmed;
            return Ok(None);
        }
        let prompt = prompt(&body, chat, thread);
        self.by_id.insert(id.to_owned(), self.items.len());
        self.last_of_chat.insert(chat.to_owned(), self.items.len());
        self.items.push(Item { id: id.to_owned(), body, times: 1, is_confirmed });
        Ok(prompt)
    }

    /// Checks that a repeat is the same, and that a new item follows a confirmed one.
    fn check_order(&self, id: &str, chat: &str, body: &Value) -> Result<(), String> {
        let last = self.last_of_chat.get(chat).and_then(|at| self.items.get(*at));
        match self.by_id.get(id).and_then(|at| self.items.get(*at)) {
            Some(known) if known.body != *body => Err(format!("{id} has changed: {} became {body}", known.body)),
            Some(known) if last.is_some_and(|last| last.id != known.id) => {
                Err(format!("{id} is repeated after a later item of {chat}"))
            }
            Some(_) => Ok(()),
            None => match last {
                Some(last) if !last.is_confirmed => {
                    Err(format!("{id} comes before {} of {chat} is confirmed", last.id))
                }
                _ => Ok(()),
            },
        }
    }
}

/// Returns the tokens of a permission request.
fn prompt(body: &Value, chat: &str, thread: &str) -> Option<Prompt> {
    if body["type"] != "permission_request" {
        return None;
    }
    let token = |label: &str| {
        let answer = body["answers"].as_array()?.iter().find(|answer| answer["label"] == label)?;
        answer["token"].as_str().map(str::to_owned)
    };
    let (chat, thread, id) = (chat.to_owned(), thread.to_owned(), body["requestId"].as_str()?.to_owned());
    Some(Prompt { chat, thread, id, allow: token("Allow")?, deny: token("Deny")? })
}
