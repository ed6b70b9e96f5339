//! The client of a server that a CLI runs on this machine: calls (HTTP/1.1) and one event stream (server-sent events).
//!
//! Invariants: nothing is sent to another machine, or before the CLI has reported the address of its server. Each call ends in
//! one reply or one report that it failed. The number and size of received events are bounded; beyond that, the server waits.
//! Every task ends when its [`Server`] is dropped. No text contains the password.

mod call;
mod event;
mod password;
mod sse;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use teamster_agents::protocol::{CallId, ServerCall};
use teamster_types::request::Limits;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until};

use self::call::Route;
pub(crate) use self::event::ServerEvent;
pub(crate) use self::password::Password;

/// The maximum number of concurrent calls.
const MAX_CALLS: usize = 64;

/// How often [`next_event_now`] yields to the reading tasks before it reports that no event is pending.
const YIELDS: usize = 8;

/// The maximum number of received events that are not taken yet.
const MAX_RECEIVED: usize = 16;

/// The client of a CLI's server.
pub(crate) struct Server {
    user: &'static str,
    password: Password,
    /// The maximum size of a reply's body and of an event.
    max_bytes: usize,
    /// The delay before a failed connection is reported. Usually the process is exiting, and its exit explains more.
    patience: Duration,
    address: Option<SocketAddr>,
    tasks: JoinSet<()>,
    sender: mpsc::Sender<ServerEvent>,
    received: mpsc::Receiver<ServerEvent>,
    failed: VecDeque<(Instant, ServerEvent)>,
}

impl Server {
    pub(crate) fn new(user: &'static str, password: &Password, limits: &Limits) -> Self {
        let (sender, received) = mpsc::channel(MAX_RECEIVED);
        Self {
            user,
            password: password.clone(),
            max_bytes: limits.max_line_bytes,
            patience: limits.drain,
            address: None,
            tasks: JoinSet::new(),
            sender,
            received,
            failed: VecDeque::new(),
        }
    }

    /// Sets the address that the CLI has reported.
    pub(crate) fn connect(&mut self, address: &str) {
        match call::local(address) {
            Some(local) => self.address = Some(local),
            None => self.reject(None, &format!("{address:?} is not an address on this machine")),
        }
    }

    pub(crate) fn call(&mut self, call: ServerCall) {
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= MAX_CALLS {
            return self.reject(Some(call.id), &format!("{MAX_CALLS} calls are in progress already"));
        }
        let Some(route) = self.route() else {
            return self.reject(Some(call.id), "the CLI has not reported the address of its server");
        };
        let (sender, max_bytes, id) = (self.sender.clone(), self.max_bytes, call.id);
        self.tasks.spawn(async move {
            let event = match route.call(call, max_bytes).await {
                Ok((status, body)) => ServerEvent::Reply { call: id, status, body },
                Err(why) => ServerEvent::Unreachable { call: Some(id), why },
            };
            // The receiver is gone only if this task is being aborted.
            _ = sender.send(event).await;
        });
    }

    pub(crate) fn subscribe(&mut self, path: &str) {
        let Some(route) = self.route() else {
            return self.reject(None, "the CLI has not reported the address of its server");
        };
        let (sender, max_bytes, path) = (self.sender.clone(), self.max_bytes, path.to_owned());
        self.tasks.spawn(async move {
            let why = route.listen(&path, max_bytes, &sender).await;
            _ = sender.send(ServerEvent::Unreachable { call: None, why }).await;
        });
    }

    fn route(&self) -> Option<Route> {
        Some(Route { address: self.address?, user: self.user, password: self.password.clone() })
    }

    /// Reports a call that is not sent, without a delay.
    fn reject(&mut self, call: Option<CallId>, why: &str) {
        self.failed.push_back((Instant::now(), ServerEvent::Unreachable { call, why: why.to_owned() }));
    }

    /// Waits for the next event. Cancel safe.
    async fn next(&mut self) -> ServerEvent {
        loop {
            let due = self.failed.iter().map(|(due, _)| *due).min();
            tokio::select! {
                biased;
                Some(event) = self.received.recv() => match event {
                    ServerEvent::Unreachable { .. } => self.failed.push_back((Instant::now() + self.patience, event)),
                    event => return event,
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let due = self.failed.iter().position(|(until, _)| due.is_some_and(|due| *until <= due));
                    if let Some((_, event)) = due.and_then(|at| self.failed.remove(at)) {
                        return event;
                    }
                }
            }
        }
    }

    /// Waits for an event that the server sent before its process exited. Returns `None` if there are no more.
    async fn rest(&mut self) -> Option<ServerEvent> {
        loop {
            let event = tokio::select! {
                biased;
                event = self.received.recv() => event,
                task = self.tasks.join_next() => match task {
                    Some(_) => continue,
                    None => self.received.try_recv().ok(),
                },
            };
            match event {
                // Expected: the process is gone.
                Some(ServerEvent::Unreachable { .. }) => {}
                event => return event,
            }
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Server")
            .field("address", &self.address)
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

/// Waits for the next event. Waits forever if there is no server. Cancel safe.
pub(crate) async fn next_event(server: &mut Option<Server>) -> ServerEvent {
    match server {
        Some(server) => server.next().await,
        None => std::future::pending().await,
    }
}

/// Returns an event that the server has sent until now. Yields first, so that the reading tasks can run.
pub(crate) async fn next_event_now(server: &mut Option<Server>) -> Option<ServerEvent> {
    let server = server.as_mut()?;
    for _ in 0..YIELDS {
        let event = tokio::select! {
            biased;
            event = server.next() => Some(event),
            () = std::future::ready(()) => None,
        };
        if event.is_some() {
            return event;
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Waits for an event that the server sent before its process exited. Returns `None` if there are no more.
pub(crate) async fn remaining_event(server: &mut Option<Server>) -> Option<ServerEvent> {
    match server {
        Some(server) => server.rest().await,
        None => None,
    }
}
