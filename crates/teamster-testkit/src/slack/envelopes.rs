//! Envelopes: which connection gets one, and when it is sent again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::ids::APP_ID;

/// The largest number of connections of an app.
pub(super) const MAX_CONNECTIONS: usize = 10;

/// The number of attempts at an envelope. After the last one, it is lost.
const MAX_ATTEMPTS: u32 = 4;

/// How long the app may take to acknowledge an envelope.
const ACK_WITHIN: Duration = Duration::from_secs(3);

/// An order for a connection.
#[derive(Debug)]
pub(super) enum Order {
    /// Send a text.
    Send(String),
    /// Close as the protocol demands.
    Close,
    /// Break off.
    Cut,
}

/// An envelope that is not acknowledged.
#[derive(Debug)]
struct Pending {
    kind: &'static str,
    payload: Value,
    accepts_response: bool,
    attempts: u32,
    /// When it is sent again. `None`: it waits for a connection.
    due: Option<Instant>,
    /// Whether it is sent again at all. Presses and commands are not.
    is_repeated: bool,
}

/// All envelopes and connections.
#[derive(Debug)]
pub(super) struct Envelopes {
    pending: BTreeMap<u64, Pending>,
    /// The envelope of each id that was sent.
    sent: BTreeMap<String, u64>,
    last: u64,
    sockets: BTreeMap<u64, mpsc::UnboundedSender<Order>>,
    /// The connections whose end is announced. They get an envelope only if there is no other one.
    ending: BTreeSet<u64>,
    /// The connections that are being closed.
    closing: BTreeMap<u64, mpsc::UnboundedSender<Order>>,
    next_socket: usize,
    /// URLs that were not used.
    tickets: BTreeSet<String>,
    pub(super) ack_within: Duration,
    pub(super) max_attempts: u32,
    /// All payloads of events so far.
    history: VecDeque<Value>,
    /// The acknowledgments in order.
    pub(super) acks: Vec<Value>,
    pub(super) lost: usize,
}

impl Default for Envelopes {
    fn default() -> Self {
        Self {
            pending: BTreeMap::new(),
            sent: BTreeMap::new(),
            last: 0,
            sockets: BTreeMap::new(),
            ending: BTreeSet::new(),
            closing: BTreeMap::new(),
            next_socket: 0,
            tickets: BTreeSet::new(),
            ack_within: ACK_WITHIN,
            max_attempts: MAX_ATTEMPTS,
            history: VecDeque::new(),
            acks: Vec::new(),
            lost: 0,
        }
    }
}

impl Envelopes {
    pub(super) fn add(&mut self, kind: &'static str, payload: Value, accepts_response: bool) {
        let is_repeated = kind == "events_api";
        if is_repeated {
            self.history.push_back(payload.clone());
        }
        self.last += 1;
        self.pending
            .insert(self.last, Pending { kind, payload, accepts_response, attempts: 0, due: None, is_repeated });
    }

    /// Sends each event so far once more, as after an acknowledgment that was lost.
    pub(super) fn repeat_events(&mut self) {
        for payload in self.history.clone() {
            self.last += 1;
            let pending = Pending {
                kind: "events_api",
                payload,
                accepts_response: false,
                attempts: 0,
                due: None,
                is_repeated: true,
            };
            self.pending.insert(self.last, pending);
        }
    }

    pub(super) fn unacknowledged(&self) -> usize {
        self.pending.len()
    }

    /// Returns the ticket of a new URL.
    pub(super) fn issue_ticket(&mut self) -> String {
        self.last += 1;
        let ticket = format!("ticket-{}", self.last);
        self.tickets.insert(ticket.clone());
        ticket
    }

    /// Uses a ticket. Returns whether it was valid.
    pub(super) fn use_ticket(&mut self, ticket: &str) -> bool {
        self.tickets.remove(ticket)
    }

    pub(super) fn connections(&self) -> usize {
        self.sockets.len()
    }

    pub(super) fn closing(&self) -> usize {
        self.closing.len()
    }

    /// Adds a connection, which gets the greeting first.
    pub(super) fn connect(&mut self, has_socket_mode: bool) -> (u64, mpsc::UnboundedReceiver<Order>) {
        self.last += 1;
        let (orders, received) = mpsc::unbounded_channel();
        let refusal = if !has_socket_mode {
            Some("link_disabled")
        } else if self.sockets.len() >= MAX_CONNECTIONS {
            Some("too_many_websockets")
        } else {
            None
        };
        let id = self.last;
        if let Some(reason) = refusal {
            _ = orders.send(Order::Send(disconnection(reason)));
            _ = orders.send(Order::Close);
            return (id, received);
        }
        let hello = json!({
            "type": "hello", "num_connections": self.sockets.len() + 1, "connection_info": {"app_id": APP_ID},
            "debug_info": {"host": "applink-testkit", "build_number": 1, "approximate_connection_time": 18_060},
        });
        _ = orders.send(Order::Send(hello.to_string()));
        self.sockets.insert(id, orders);
        for (ending, orders) in
            std::mem::take(&mut self.ending).into_iter().filter_map(|id| self.sockets.remove_entry(&id))
        {
            // What was sent before goes out first.
            _ = orders.send(Order::Close);
            self.closing.insert(ending, orders);
        }
        (id, received)
    }

    pub(super) fn disconnected(&mut self, id: u64) {
        self.sockets.remove(&id);
        self.ending.remove(&id);
        self.closing.remove(&id);
    }

    /// Gives each connection an order.
    pub(super) fn order_all(&mut self, order: impl Fn() -> Order) {
        for orders in self.sockets.values() {
            _ = orders.send(order());
        }
    }

    /// Announces the end of each connection. It ends when there is another one.
    pub(super) fn announce_end(&mut self, reason: &str) {
        self.ending.extend(self.sockets.keys());
        self.order_all(|| Order::Send(disconnection(reason)));
    }

    /// An app has acknowledged an envelope.
    pub(super) fn acknowledge(&mut self, ack: &Value) -> Option<(&'static str, Value)> {
        self.acks.push(ack.clone());
        let id = ack.get("envelope_id").and_then(Value::as_str)?;
        let number = self.sent.get(id)?;
        self.pending.remove(number).map(|pending| (pending.kind, pending.payload))
    }

    /// Returns when the next envelope is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        if self.sockets.is_empty() {
            return None;
        }
        self.pending.values().filter_map(|pending| pending.due).min()
    }

    /// Sends what is due.
    pub(super) fn deliver(&mut self, now: Instant) {
        self.sockets.retain(|_, orders| !orders.is_closed());
        let mut open: Vec<_> = self.sockets.keys().filter(|id| !self.ending.contains(id)).copied().collect();
        if open.is_empty() {
            open.extend(self.sockets.keys());
        }
        if open.is_empty() {
            return;
        }
        let due: Vec<_> =
            self.pending.iter().filter(|(_, one)| one.due.is_none_or(|due| due <= now)).map(|(id, _)| *id).collect();
        for number in due {
            let Some(pending) = self.pending.get_mut(&number) else { continue };
            let is_over = pending.attempts >= self.max_attempts || (pending.attempts > 0 && !pending.is_repeated);
            if is_over {
                self.pending.remove(&number);
                self.lost += 1;
                continue;
            }
            let id = format!("envelope-{number}-{}", pending.attempts);
            let envelope = pending.envelope(&id);
            pending.attempts += 1;
            pending.due = now.checked_add(self.ack_within);
            self.sent.insert(id, number);
            self.next_socket = self.next_socket.wrapping_add(1);
            let socket = open.get(self.next_socket % open.len()).and_then(|id| self.sockets.get(id));
            if let Some(socket) = socket {
                _ = socket.send(Order::Send(envelope.to_string()));
            }
        }
    }
}

impl Pending {
    fn envelope(&self, id: &str) -> Value {
        let mut envelope = json!({
            "envelope_id": id, "type": self.kind, "payload": self.payload,
            "accepts_response_payload": self.accepts_response,
        });
        if let (Some(envelope), true) = (envelope.as_object_mut(), self.kind == "events_api") {
            envelope.insert("retry_attempt".to_owned(), self.attempts.into());
            let reason = if self.attempts == 0 { "" } else { "timeout" };
            envelope.insert("retry_reason".to_owned(), reason.into());
        }
        envelope
    }
}

fn disconnection(reason: &str) -> String {
    json!({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-testkit"}}).to_string()
}
