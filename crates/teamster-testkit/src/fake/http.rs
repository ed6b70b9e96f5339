//! A CLI's own server on the loopback: it hands over the calls that are made, and tells events to whoever reads them.
//!
//! Its thread lives as long as the process. Who has not the password of the process gets nothing.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::{mpsc as channel, oneshot};

use crate::server::LocalServer;

/// A prompt may hold files.
const LONGEST_BODY: usize = 64 * 1024 * 1024;

/// Where events are read.
const EVENTS: &str = "/event";

/// How the CLI says where it listens, but for the address.
pub(super) const LISTENS: &str = "opencode server listening on ";

/// The server, in a thread of its own.
#[derive(Debug)]
pub(super) struct Server {
    address: String,
    calls: mpsc::Receiver<Called>,
    readers: Arc<Readers>,
}

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) method: String,
    /// With its query.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    reply: oneshot::Sender<(u16, Vec<u8>)>,
}

impl Called {
    pub(super) fn answer(self, status: u16, body: &Value) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.answer_bytes(status, body);
    }

    pub(super) fn answer_bytes(self, status: u16, body: Vec<u8>) {
        // Who called may have gone.
        _ = self.reply.send((status, body));
    }
}

/// Who reads events.
#[derive(Debug, Default)]
struct Readers {
    channels: Mutex<Vec<channel::UnboundedSender<String>>>,
    came: Condvar,
}

#[derive(Clone)]
struct Desk {
    calls: mpsc::Sender<Called>,
    readers: Arc<Readers>,
    /// What the header has to say, if there is a password.
    authorization: Option<String>,
}

impl Server {
    /// Serves on a free port, with the password of `OPENCODE_SERVER_PASSWORD` if there is one.
    pub(super) fn start() -> io::Result<Self> {
        let (calls, called) = mpsc::channel();
        let readers = Arc::new(Readers::default());
        let user = std::env::var("OPENCODE_SERVER_USERNAME").unwrap_or_else(|_| "opencode".to_owned());
        let password = std::env::var("OPENCODE_SERVER_PASSWORD").ok();
        let authorization =
            password.map(|password| format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))));
        let desk = Desk { calls, readers: Arc::clone(&readers), authorization };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = runtime.block_on(LocalServer::start(Router::new().fallback(serve).with_state(desk)))?;
        let address = format!("http://{}", server.address());
        thread::spawn(move || {
            runtime.block_on(std::future::pending::<()>());
            drop(server);
        });
        Ok(Self { address, calls: called, readers })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The next call, if one comes until then.
    pub(super) fn next(&self, until: Option<Instant>) -> Option<Called> {
        match until {
            None => self.calls.recv().ok(),
            Some(until) => self.calls.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
        }
    }

    /// Tells an event to all who read them; when nobody does, not before somebody comes.
    pub(super) fn tell(&self, event: &str) {
        let mut channels = self.readers.channels.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            channels.retain(|reader| !reader.is_closed());
            if !channels.is_empty() {
                break;
            }
            // Looked at again, since nobody says when a reader goes.
            let waited = self.readers.came.wait_timeout(channels, Duration::from_secs(1));
            channels = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        for reader in channels.iter() {
            _ = reader.send(event.to_owned());
        }
    }
}

/// Says where the server listens, as the CLI does.
pub(super) fn announce(server: &Server) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{LISTENS}{}", server.address())?;
    stdout.flush()
}

async fn serve(State(desk): State<Desk>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let given = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if desk.authorization.as_deref().is_some_and(|wanted| given != Some(wanted)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if head.method == Method::GET && head.uri.path() == EVENTS {
        return events(&desk.readers);
    }
    let Ok(body) = to_bytes(body, LONGEST_BODY).await else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
    let (reply, answered) = oneshot::channel();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let called = Called { method: head.method.to_string(), path, body: body.into(), reply };
    if desk.calls.send(called).is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let Ok((status, body)) = answered.await else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// A stream of events, which begins as OpenCode's does.
fn events(readers: &Readers) -> Response {
    let (sender, receiver) = channel::unbounded_channel();
    _ = sender.send(json!({"id": "evt_0", "type": "server.connected", "properties": {}}).to_string());
    readers.channels.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
    readers.came.notify_all();
    let next = |mut receiver: channel::UnboundedReceiver<String>| async move {
        let event = receiver.recv().await?;
        Some((Ok::<_, Infallible>(Bytes::from(format!("data: {event}\n\n"))), receiver))
    };
    let body = stream::unfold(receiver, next);
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
}
