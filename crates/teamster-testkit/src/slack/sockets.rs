//! The connections of Socket Mode. Each connection is a task of a set that the accepting task owns.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_websockets::{Message, ServerBuilder, WebSocketStream};

use super::envelopes::Order;
use super::world::Shared;

/// The largest head of a handshake.
const MAX_HEAD: usize = 16 << 10;

/// The time limit of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the service sends a ping.
const PING: Duration = Duration::from_secs(5);

/// The server of the connections.
#[derive(Debug)]
pub(super) struct SocketServer {
    accepting: JoinHandle<Infallible>,
    repeating: JoinHandle<()>,
}

impl SocketServer {
    pub(super) async fn bind() -> io::Result<TcpListener> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
    }

    /// Serves, and sends envelopes again that are not acknowledged.
    pub(super) fn start(listener: TcpListener, shared: &Arc<Shared>) -> Self {
        let accepting = tokio::spawn(accept(listener, Arc::clone(shared)));
        let repeating = tokio::spawn(repeat(Arc::clone(shared)));
        Self { accepting, repeating }
    }

    /// Stops. Returns once every connection is closed.
    pub(super) async fn stop(&mut self) {
        self.repeating.abort();
        self.accepting.abort();
        // The only outcome is the cancellation.
        _ = (&mut self.accepting).await;
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        self.repeating.abort();
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&shared)));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Sends envelopes again when they are due.
async fn repeat(shared: Arc<Shared>) {
    let mut changes = shared.changes();
    loop {
        let due = shared.world().envelopes.next_due();
        let due = due.unwrap_or_else(|| Instant::now() + Duration::from_hours(1));
        tokio::select! {
            is_open = changes.changed() => if is_open.is_err() { return },
            () = tokio::time::sleep_until(due.into()) => shared.change(|_| {}),
        }
    }
}

async fn connection(mut stream: TcpStream, shared: Arc<Shared>) {
    let head = tokio::time::timeout(HANDSHAKE_TIMEOUT, head(&stream)).await;
    let ticket = head.ok().flatten().as_deref().and_then(ticket).map(str::to_owned);
    let is_valid = ticket.is_some_and(|ticket| shared.change(|world| world.envelopes.use_ticket(&ticket)));
    if !is_valid {
        _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
        return;
    }
    let Ok((_, mut stream)) = ServerBuilder::new().accept(stream).await else { return };
    let (id, mut orders) = shared.change(|world| world.envelopes.connect(world.has_socket_mode));
    let mut pings = tokio::time::interval(PING);
    loop {
        let is_open = tokio::select! {
            order = orders.recv() => execute(order, &mut stream).await,
            read = stream.next() => match read {
                Some(Ok(message)) => receive(&message, &shared),
                _ => false,
            },
            _ = pings.tick() => stream.send(Message::ping("Ping from applink")).await.is_ok(),
        };
        if !is_open {
            break;
        }
    }
    shared.change(|world| world.envelopes.disconnected(id));
}

/// Executes an order. Returns whether the connection continues.
async fn execute(order: Option<Order>, stream: &mut WebSocketStream<TcpStream>) -> bool {
    match order {
        Some(Order::Send(text)) => stream.send(Message::text(text)).await.is_ok(),
        // The client confirms it, after what it has sent before.
        Some(Order::Close) => stream.send(Message::close(None, "")).await.is_ok(),
        Some(Order::Cut) | None => false,
    }
}

/// Takes an acknowledgment. Returns whether the connection continues.
fn receive(message: &Message, shared: &Shared) -> bool {
    if let Some(Ok(ack)) = message.as_text().map(serde_json::from_str::<Value>) {
        shared.change(|world| world.acknowledged(&ack));
    }
    !message.is_close()
}

/// Reads the head of a request, and leaves it in the connection.
async fn head(stream: &TcpStream) -> Option<String> {
    let mut buffer = vec![0; MAX_HEAD];
    let mut known = 0;
    loop {
        stream.readable().await.ok()?;
        let count = stream.peek(&mut buffer).await.ok().filter(|count| *count > 0)?;
        let text = String::from_utf8_lossy(buffer.get(..count)?);
        if text.contains("\r\n\r\n") {
            return Some(text.into_owned());
        }
        if count == known {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        known = count;
    }
}

fn ticket(head: &str) -> Option<&str> {
    let target = head.split_whitespace().nth(1)?;
    let (_, query) = target.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix("ticket="))
}
