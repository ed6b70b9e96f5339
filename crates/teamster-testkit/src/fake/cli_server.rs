//! The HTTP server that a CLI runs on the loopback interface. It returns incoming calls to its
//! owner and sends events to every connected reader.
//!
//! Its thread lives as long as the process. A request without the process's password gets status
//! 401.

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

/// The longest accepted body. A prompt may contain files.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// The path of the event stream.
const EVENTS_PATH: &str = "/event";

/// The line with which the CLI announces its address, without the address.
pub(super) const LISTENING_PREFIX: &str = "opencode server listening on ";

/// The server. It runs on its own thread.
#[derive(Debug)]
pub(super) struct Server {
    address: String,
    calls: mpsc::Receiver<PendingCall>,
    readers: Arc<EventReaders>,
}

/// A call that waits for its response.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) method: String,
    /// The path, including the query.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    reply: oneshot::Sender<(u16, Vec<u8>)>,
}

impl PendingCall {
    pub(super) fn answer(self, status: u16, body: &Value) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.answer_bytes(status, body);
    }

    pub(super) fn answer_bytes(self, status: u16, body: Vec<u8>) {
        // The caller may have disconnected.
        _ = self.reply.send((status, body));
    }
}

/// The clients that read events.
#[derive(Debug, Default)]
struct EventReaders {
    channels: Mutex<Vec<channel::UnboundedSender<String>>>,
    connected: Condvar,
}

#[derive(Clone)]
struct ServerState {
    calls: mpsc::Sender<PendingCall>,
    readers: Arc<EventReaders>,
    /// The required `Authorization` header, if a password is set.
    authorization: Option<String>,
}

impl Server {
    /// Serves on a free port. If `OPENCODE_SERVER_PASSWORD` is set, it is required.
    pub(super) fn start() -> io::Result<Self> {
        let (calls, called) = mpsc::channel();
        let readers = Arc::new(EventReaders::default());
        let user = std::env::var("OPENCODE_SERVER_USERNAME").unwrap_or_else(|_| "opencode".to_owned());
        let password = std::env::var("OPENCODE_SERVER_PASSWORD").ok();
        let authorization =
            password.map(|password| format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))));
        let state = ServerState { calls, readers: Arc::clone(&readers), authorization };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = runtime.block_on(LocalServer::start(Router::new().fallback(serve).with_state(state)))?;
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

    /// Returns the next call, or `None` if none arrives before the deadline.
    pub(super) fn next(&self, until: Option<Instant>) -> Option<PendingCall> {
        match until {
            None => self.calls.recv().ok(),
            Some(until) => self.calls.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
        }
    }

    /// Sends an event to all connected readers. Waits for a reader if none is connected.
    pub(super) fn emit(&self, event: &str) {
        let mut channels = self.readers.channels.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            channels.retain(|reader| !reader.is_closed());
            if !channels.is_empty() {
                break;
            }
            // Repeated every second, because a reader that disconnects does not notify.
            let waited = self.readers.connected.wait_timeout(channels, Duration::from_secs(1));
            channels = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        for reader in channels.iter() {
            _ = reader.send(event.to_owned());
        }
    }
}

/// Prints the server's address as the CLI does.
pub(super) fn announce(server: &Server) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{LISTENING_PREFIX}{}", server.address())?;
    stdout.flush()
}

async fn serve(State(state): State<ServerState>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let given = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if state.authorization.as_deref().is_some_and(|wanted| given != Some(wanted)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if head.method == Method::GET && head.uri.path() == EVENTS_PATH {
        return events(&state.readers);
    }
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
    let (reply, answered) = oneshot::channel();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let called = PendingCall { method: head.method.to_string(), path, body: body.into(), reply };
    if state.calls.send(called).is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let Ok((status, body)) = answered.await else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Responds with an event stream, whose first event is the same as OpenCode's.
fn events(readers: &EventReaders) -> Response {
    let (sender, receiver) = channel::unbounded_channel();
    _ = sender.send(json!({"id": "evt_0", "type": "server.connected", "properties": {}}).to_string());
    readers.channels.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
    readers.connected.notify_all();
    let next = |mut receiver: channel::UnboundedReceiver<String>| async move {
        let event = receiver.recv().await?;
        Some((Ok::<_, Infallible>(Bytes::from(format!("data: {event}\n\n"))), receiver))
    };
    let body = stream::unfold(receiver, next);
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
}
