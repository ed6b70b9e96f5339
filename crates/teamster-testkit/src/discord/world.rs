//! The state of the service.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use super::bot::{CONTENT_FLAG, TOKEN};
use super::clock::{id_at, now_ms};
use super::faults::Faults;
use super::files::Files;
use super::pending::Pending;
use super::person::Person;
use super::sessions::{Connections, Sessions};

/// A call of the bot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Call {
    /// The name of the route, such as `createMessage`.
    pub route: String,
    /// The path below the version.
    pub path: String,
    /// The JSON of the body, without the contents of files.
    pub body: Value,
}

/// A server of Discord.
#[derive(Clone, Debug)]
pub(super) struct Guild {
    pub(super) name: String,
    /// What the bot may do.
    pub(super) permissions: u64,
    /// The roles that the bot holds.
    pub(super) roles: Vec<u64>,
}

/// A channel, a thread, or the private channel with a person.
#[derive(Debug, Default)]
pub(super) struct Channel {
    pub(super) kind: u8,
    pub(super) guild: Option<u64>,
    pub(super) parent: Option<u64>,
    pub(super) owner: Option<u64>,
    pub(super) name: String,
    pub(super) recipient: Option<Person>,
    pub(super) messages: BTreeMap<u64, Value>,
}

/// The state, and the number of its changes.
#[derive(Debug)]
pub(super) struct Shared {
    world: Mutex<World>,
    changes: watch::Sender<u64>,
    /// Closed when the server ends.
    alive: watch::Receiver<()>,
}

/// The state of the service.
#[derive(Debug)]
pub(super) struct World {
    /// The address of the server, for URLs.
    pub(super) host: String,
    pub(super) token: String,
    pub(super) flags: u64,
    pub(super) guilds: BTreeMap<u64, Guild>,
    pub(super) channels: BTreeMap<u64, Channel>,
    pub(super) commands: Vec<Value>,
    pub(super) sessions: Sessions,
    pub(super) connections: Connections,
    pub(super) heartbeat: Duration,
    /// The number of sessions that may still be started.
    pub(super) starts_left: u64,
    pub(super) interactions: BTreeMap<u64, Pending>,
    pub(super) nonces: BTreeMap<(u64, String), (Instant, Value)>,
    pub(super) files: Files,
    pub(super) faults: Faults,
    pub(super) calls: Vec<Call>,
    /// The limit of a route for each channel.
    pub(super) limits: BTreeMap<String, (usize, Duration)>,
    pub(super) counted: BTreeMap<(String, String), VecDeque<Instant>>,
    last_id: u64,
}

impl Shared {
    pub(super) fn new(alive: watch::Receiver<()>) -> Self {
        Self { world: Mutex::new(World::new()), changes: watch::Sender::new(0), alive }
    }

    /// Locks the state. A change by this guard wakes nothing.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes what waits.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = change(&mut self.world());
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns once the server ends.
    pub(super) async fn ended(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }
}

impl World {
    fn new() -> Self {
        Self {
            host: String::new(),
            token: TOKEN.to_owned(),
            flags: CONTENT_FLAG,
            guilds: BTreeMap::new(),
            channels: BTreeMap::new(),
            commands: Vec::new(),
            sessions: Sessions::default(),
            connections: Connections::default(),
            heartbeat: Duration::from_millis(41_250),
            starts_left: 1_000,
            interactions: BTreeMap::new(),
            nonces: BTreeMap::new(),
            files: Files::default(),
            faults: Faults::default(),
            calls: Vec::new(),
            limits: BTreeMap::new(),
            counted: BTreeMap::new(),
            last_id: 0,
        }
    }

    /// Returns a new id, which starts with the time.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id = id_at(now_ms()).max(self.last_id + 1);
        self.last_id
    }
}
