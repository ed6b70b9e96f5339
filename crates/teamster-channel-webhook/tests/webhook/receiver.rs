//! A receiver of webhooks with scripted answers, and an inbox that records what it gets.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use teamster_channel::signature::{SignedMessage, WebhookSecret};
use teamster_channel::{
    Address, ChatCommand, CommandReply, Content, Edit, EditOutcome, Inbox, InboxError, Message, Operation, Outgoing,
    Part, PromptAnswer, PromptDecision, Receipt,
};
use teamster_channel_webhook::{SecretText, WebhookChannel, WebhookConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const OLD_SECRET: &str = "whsec_AAKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What the receiver does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Answers with this head, such as `200 OK`, and headers.
    Status(&'static str),
    /// Reads the request and never answers.
    Hang,
    /// Reads the request and resets the connection.
    Reset,
    /// Answers with a body that never ends.
    Flood,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) id: String,
    pub(crate) timestamp: String,
    pub(crate) signatures: String,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let now = self.timestamp.parse().unwrap();
        let message =
            SignedMessage { id: &self.id, timestamp: &self.timestamp, signatures: &self.signatures, body: &self.body };
        let secret = WebhookSecret::parse(secret).unwrap();
        secret.verify(&message, now, Duration::from_secs(1), Duration::from_secs(1)).is_ok()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A receiver. It answers with its script, then with 200.
pub(crate) struct Receiver {
    pub(crate) url: String,
    pub(crate) got: Arc<Mutex<Vec<Got>>>,
    task: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (got, script) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(VecDeque::from_iter(script))));
        let requests = Arc::clone(&got);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&requests)));
            }
        });
        Self { url, got, task }
    }

    pub(crate) fn requests(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Mutex<VecDeque<Answer>>>, got: Arc<Mutex<Vec<Got>>>) {
    let answer = script.lock().unwrap().pop_front().unwrap_or(Answer::Status("200 OK\r\ncontent-length: 0"));
    let mut bytes = Vec::new();
    let request = loop {
        let mut buffer = [0; 8192];
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        bytes.extend_from_slice(&buffer[..read]);
        if let Some(request) = complete(&bytes) {
            break request;
        }
    };
    got.lock().unwrap().push(request);
    match answer {
        Answer::Status(head) => {
            stream.write_all(format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n").as_bytes()).await.unwrap();
        }
        Answer::Hang => std::future::pending().await,
        Answer::Reset => stream.set_zero_linger().unwrap(),
        Answer::Flood => {
            _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            while stream.write_all(b"400\r\n").await.is_ok() {
                _ = stream.write_all(&[b'x'; 0x400]).await;
                _ = stream.write_all(b"\r\n").await;
            }
        }
    }
}

fn complete(bytes: &[u8]) -> Option<Got> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let headers: HashMap<String, String> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers["content-length"].parse().unwrap();
    let body = bytes.get(end + 4..end + 4 + length)?.to_vec();
    Some(Got {
        id: headers["webhook-id"].clone(),
        timestamp: headers["webhook-timestamp"].clone(),
        signatures: headers["webhook-signature"].clone(),
        body,
    })
}

pub(crate) fn config(url: &str) -> WebhookConfig {
    let mut config = WebhookConfig::new("ci", url, SECRET);
    config.allow_loopback = true;
    config.timeout = Duration::from_secs(2);
    config
}

pub(crate) fn channel(url: &str) -> WebhookChannel {
    WebhookChannel::new(config(url)).unwrap()
}

pub(crate) fn rotated(url: &str) -> WebhookChannel {
    let mut config = config(url);
    config.secrets.push(SecretText::new(OLD_SECRET));
    WebhookChannel::new(config).unwrap()
}

pub(crate) fn outgoing(key: &str) -> Outgoing {
    Outgoing {
        key: key.to_owned(),
        address: Address { chat: "c".to_owned(), thread: String::new() },
        conversation: None,
        turn: Some("t".to_owned()),
        operation: Operation::New,
        content: Content::Answer { text: "Hello".to_owned(), session_id: None },
        part: Part::ONLY,
        bytes: Arc::from([]),
        may_be_repeat: false,
        created_at_ms: 0,
    }
}

/// Records what it gets. Messages are accepted once by their ids, as in the gateway.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) messages: Mutex<Vec<Message>>,
    pub(crate) commands: Mutex<Vec<String>>,
    pub(crate) edits: Mutex<Vec<Edit>>,
    pub(crate) answers: Mutex<Vec<PromptAnswer>>,
    pub(crate) state: Mutex<HashMap<String, Value>>,
    pub(crate) fails: Mutex<bool>,
    pub(crate) receipt: Mutex<Option<Receipt>>,
}

#[async_trait]
impl Inbox for Recorder {
    async fn message(&self, message: Message) -> Result<Receipt, InboxError> {
        if *self.fails.lock().unwrap() {
            return Err(InboxError("the disk is full".to_owned()));
        }
        if let Some(receipt) = self.receipt.lock().unwrap().clone() {
            return Ok(receipt);
        }
        let mut messages = self.messages.lock().unwrap();
        if messages.iter().any(|known| known.ids == message.ids) {
            return Ok(Receipt::Duplicate);
        }
        messages.push(message);
        Ok(Receipt::Accepted { turn: format!("turn-{}", messages.len()) })
    }

    async fn edit(&self, edit: Edit) -> Result<EditOutcome, InboxError> {
        let outcome = match edit.id.as_str() {
            "unknown" => EditOutcome::Unknown,
            "late" => EditOutcome::NotWaiting,
            "refused" => EditOutcome::Refused("a word is not permitted".to_owned()),
            _ => EditOutcome::Edited,
        };
        self.edits.lock().unwrap().push(edit);
        Ok(outcome)
    }

    async fn answer(&self, answer: PromptAnswer) -> Result<PromptDecision, InboxError> {
        let mut answers = self.answers.lock().unwrap();
        let decision = match answer.author.id.as_str() {
            "stranger" => return Ok(PromptDecision::NotAllowed),
            _ if answers.iter().any(|known| known.token == answer.token) => PromptDecision::Closed,
            _ => PromptDecision::Applied,
        };
        answers.push(answer);
        Ok(decision)
    }

    async fn command(&self, command: ChatCommand) -> Result<CommandReply, InboxError> {
        self.commands.lock().unwrap().push(command.name);
        Ok(CommandReply { text: "done".to_owned() })
    }

    async fn state(&self, key: &str) -> Result<Option<Value>, InboxError> {
        Ok(self.state.lock().unwrap().get(key).cloned())
    }

    async fn set_state(&self, key: &str, state: Value) -> Result<(), InboxError> {
        self.state.lock().unwrap().insert(key.to_owned(), state);
        Ok(())
    }
}
