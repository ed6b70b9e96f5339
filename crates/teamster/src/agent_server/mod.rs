//! Our side of a server that a CLI starts on this machine, where its protocol is spoken over one: calls (HTTP/1.1) and one
//! stream of events (server-sent events).
//!
//! Invariants: nothing is sent to another machine, and nothing before the CLI has said where its server is; each call gets one
//! reply, or word that there is none; what is heard and not taken yet is bounded in number and size, and then the server
//! waits; every task ends with its [`Server`]. The password stands in no text.

mod call;
mod sse;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use teamster_agents::protocol::{CallId, Input, ServerCall, ServerInput};
use teamster_types::request::Limits;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until};

use call::Route;

/// Calls that may be under way.
const MOST_CALLS: usize = 64;

/// How often other tasks get their turn before it is known that nothing more is pending.
const YIELDS: usize = 8;

/// What is heard and not taken yet.
const MOST_HEARD: usize = 16;

/// What was heard of a server.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    Reply {
        call: CallId,
        status: u16,
        body: Bytes,
    },
    Event(Bytes),
    /// An event that was longer than is allowed.
    TooLong {
        head: Bytes,
        length: u64,
    },
    /// There will be no reply; without a call: no events any more.
    Unreachable {
        call: Option<CallId>,
        why: String,
    },
}

impl ServerEvent {
    /// For the protocol; `None` if it is not for it.
    pub(crate) fn input(&self) -> Option<Input<'_>> {
        Some(Input::Server(match self {
            Self::Reply { call, status, body } => ServerInput::Reply { call: *call, status: *status, body },
            Self::Event(data) => ServerInput::Event(data),
            Self::Unreachable { call, why } => ServerInput::Unreachable { call: *call, why },
            Self::TooLong { .. } => return None,
        }))
    }
}

/// Our side of a CLI's server.
pub(crate) struct Server {
    user: &'static str,
    password: Password,
    /// Of a reply's body, and of an event.
    max_bytes: usize,
    /// How long a broken connection waits to be told: mostly the process is about to be gone, which says more.
    patience: Duration,
    address: Option<SocketAddr>,
    tasks: JoinSet<()>,
    say: mpsc::Sender<ServerEvent>,
    heard: mpsc::Receiver<ServerEvent>,
    broken: VecDeque<(Instant, ServerEvent)>,
}

impl Server {
    pub(crate) fn new(user: &'static str, password: &Password, limits: &Limits) -> Self {
        let (say, heard) = mpsc::channel(MOST_HEARD);
        Self {
            user,
            password: password.clone(),
            max_bytes: limits.max_line_bytes,
            patience: limits.drain,
            address: None,
            tasks: JoinSet::new(),
            say,
            heard,
            broken: VecDeque::new(),
        }
    }

    /// The CLI has said where its server is.
    pub(crate) fn connect(&mut self, address: &str) {
        match call::local(address) {
            Some(local) => self.address = Some(local),
            None => self.refuse(None, &format!("{address:?} is no address on this machine")),
        }
    }

    pub(crate) fn call(&mut self, call: ServerCall) {
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= MOST_CALLS {
            return self.refuse(Some(call.id), &format!("{MOST_CALLS} calls are under way already"));
        }
        let Some(route) = self.route() else {
            return self.refuse(Some(call.id), "the CLI has not said where its server is");
        };
        let (say, max_bytes, id) = (self.say.clone(), self.max_bytes, call.id);
        self.tasks.spawn(async move {
            let heard = match route.call(call, max_bytes).await {
                Ok((status, body)) => ServerEvent::Reply { call: id, status, body },
                Err(why) => ServerEvent::Unreachable { call: Some(id), why },
            };
            // Nobody listens any more only when this task is to end.
            _ = say.send(heard).await;
        });
    }

    pub(crate) fn subscribe(&mut self, path: &str) {
        let Some(route) = self.route() else {
            return self.refuse(None, "the CLI has not said where its server is");
        };
        let (say, max_bytes, path) = (self.say.clone(), self.max_bytes, path.to_owned());
        self.tasks.spawn(async move {
            let why = route.listen(&path, max_bytes, &say).await;
            _ = say.send(ServerEvent::Unreachable { call: None, why }).await;
        });
    }

    fn route(&self) -> Option<Route> {
        Some(Route { address: self.address?, user: self.user, password: self.password.clone() })
    }

    /// Says so without waiting: it is our own doing.
    fn refuse(&mut self, call: Option<CallId>, why: &str) {
        self.broken.push_back((Instant::now(), ServerEvent::Unreachable { call, why: why.to_owned() }));
    }

    /// What is heard next. Can be dropped and called again at any time.
    async fn next(&mut self) -> ServerEvent {
        loop {
            let due = self.broken.iter().map(|(due, _)| *due).min();
            tokio::select! {
                biased;
                Some(heard) = self.heard.recv() => match heard {
                    ServerEvent::Unreachable { .. } => self.broken.push_back((Instant::now() + self.patience, heard)),
                    heard => return heard,
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let due = self.broken.iter().position(|(until, _)| due.is_some_and(|due| *until <= due));
                    if let Some((_, heard)) = due.and_then(|at| self.broken.remove(at)) {
                        return heard;
                    }
                }
            }
        }
    }

    /// What was said before the process's end and is on its way still; `None` when there is no more.
    async fn rest(&mut self) -> Option<ServerEvent> {
        loop {
            let heard = tokio::select! {
                biased;
                heard = self.heard.recv() => heard,
                task = self.tasks.join_next() => match task {
                    Some(_) => continue,
                    None => self.heard.try_recv().ok(),
                },
            };
            match heard {
                // Of course it is.
                Some(ServerEvent::Unreachable { .. }) => {}
                heard => return heard,
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

/// What is heard next, where there is a server; else nothing ever is. Can be dropped and called again at any time.
pub(crate) async fn next_event(server: &mut Option<Server>) -> ServerEvent {
    match server {
        Some(server) => server.next().await,
        None => std::future::pending().await,
    }
}

/// What has been heard until now, where there is a server. The tasks that read from it get their turn first.
pub(crate) async fn next_event_now(server: &mut Option<Server>) -> Option<ServerEvent> {
    let server = server.as_mut()?;
    for _ in 0..YIELDS {
        let heard = tokio::select! {
            biased;
            heard = server.next() => Some(heard),
            () = std::future::ready(()) => None,
        };
        if heard.is_some() {
            return heard;
        }
        tokio::task::yield_now().await;
    }
    None
}

/// What is left to be heard after the process's end.
pub(crate) async fn remaining_event(server: &mut Option<Server>) -> Option<ServerEvent> {
    match server {
        Some(server) => server.rest().await,
        None => None,
    }
}

/// A password that nobody else knows.
#[derive(Clone)]
pub(crate) struct Password(Arc<str>);

impl Password {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).map_err(std::io::Error::from)?;
        Ok(Self(BASE64_URL_SAFE_NO_PAD.encode(bytes).into()))
    }

    /// As this user sends it.
    pub(crate) fn basic(&self, user: &str) -> String {
        BASE64_STANDARD.encode(format!("{user}:{}", self.0))
    }

    /// Its text, for who has to send it, or to take it out of other texts.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password")
    }
}
