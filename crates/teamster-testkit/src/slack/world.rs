//! The state of the service.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::envelopes::Envelopes;
use super::faults::Faults;
use super::files::Files;
use super::ids::{APP_ID, APP_TOKEN, BOT_TOKEN, BOT_USER, TEAM};
use super::people::Person;

/// The scopes of the bot.
const SCOPES: [&str; 10] = [
    "app_mentions:read",
    "channels:history",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "im:history",
    "mpim:history",
    "users:read",
];

/// A call of the bot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Call {
    /// The method.
    pub method: String,
    /// Its parameters. Those of a form are texts.
    pub parameters: Value,
}

/// The state, and the number of its changes.
#[derive(Debug)]
pub(super) struct Shared {
    world: Mutex<World>,
    changes: watch::Sender<u64>,
}

/// A conversation of people.
#[derive(Debug, Default)]
pub(super) struct Channel {
    /// `im`, `mpim`, `channel` or `group`.
    pub(super) kind: String,
    /// Whether the bot is a member.
    pub(super) has_bot: bool,
    /// The messages by their times.
    pub(super) messages: BTreeMap<String, Value>,
    /// When the last messages of the bot were stored.
    pub(super) sent: VecDeque<Instant>,
}

/// The state of the service.
#[derive(Debug)]
pub(super) struct World {
    /// The URL of the server.
    pub(super) base: String,
    /// The address of the WebSocket server.
    pub(super) socket_base: String,
    pub(super) bot_token: String,
    pub(super) app_token: String,
    /// The app of the bot. It is another one if an operator has mixed two apps.
    pub(super) bot_app: String,
    pub(super) scopes: BTreeSet<String>,
    pub(super) has_socket_mode: bool,
    pub(super) channels: BTreeMap<String, Channel>,
    pub(super) people: BTreeMap<String, Person>,
    pub(super) envelopes: Envelopes,
    pub(super) files: Files,
    pub(super) faults: Faults,
    pub(super) calls: Vec<Call>,
    /// What the bot has answered to presses and commands, by their trigger ids.
    pub(super) responses: BTreeMap<String, Vec<Value>>,
    /// The dialogs that the bot has opened, by the trigger ids of the presses.
    pub(super) views: BTreeMap<String, Value>,
    pub(super) channel_limit: Option<(usize, Duration)>,
    last_id: u64,
}

impl Shared {
    pub(super) fn new(socket_base: String) -> Self {
        Self { world: Mutex::new(World::new(socket_base)), changes: watch::Sender::new(0) }
    }

    /// Locks the state for reading.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes those who wait.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = {
            let mut world = self.world();
            let changed = change(&mut world);
            world.deliver(Instant::now());
            changed
        };
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl World {
    fn new(socket_base: String) -> Self {
        Self {
            base: String::new(),
            socket_base,
            bot_token: BOT_TOKEN.to_owned(),
            app_token: APP_TOKEN.to_owned(),
            bot_app: APP_ID.to_owned(),
            scopes: SCOPES.map(str::to_owned).into_iter().collect(),
            has_socket_mode: true,
            channels: BTreeMap::new(),
            people: BTreeMap::new(),
            envelopes: Envelopes::default(),
            files: Files::default(),
            faults: Faults::default(),
            calls: Vec::new(),
            responses: BTreeMap::new(),
            views: BTreeMap::new(),
            channel_limit: None,
            last_id: 0,
        }
    }

    /// Returns a number that no other object has.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Returns the time of a new message. It is unique, and increases.
    pub(super) fn next_ts(&mut self) -> String {
        let id = self.next_id();
        format!("{}.{:06}", now(), id % 1_000_000)
    }

    /// Returns the scopes as the headers of answers have them.
    pub(super) fn scope_list(&self) -> String {
        self.scopes.iter().map(String::as_str).collect::<Vec<_>>().join(",")
    }

    /// Sends the envelopes that are due.
    pub(super) fn deliver(&mut self, now: Instant) {
        self.envelopes.deliver(now);
    }

    /// Adds an event of the Events API.
    pub(super) fn add_event(&mut self, event: &Value) {
        let number = self.next_id();
        let payload = json!({
            "token": "verification", "team_id": TEAM, "api_app_id": APP_ID, "event": event, "type": "event_callback",
            "event_id": format!("Ev{number:08}"), "event_time": now(), "is_ext_shared_channel": false,
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": true, "is_enterprise_install": false}],
        });
        self.envelopes.add("events_api", payload, false);
    }
}

/// Returns the time in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
