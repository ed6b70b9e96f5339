//! The state of the service.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::faults::Faults;
use super::files::Files;

/// The token of the bot.
pub(super) const TOKEN: &str = "4242:AAtest-token_of_the_testkit";

/// The id of the bot.
pub(super) const BOT_ID: i64 = 4242;

/// The user name of the bot.
pub const BOT_NAME: &str = "teamster_test_bot";

/// The kinds of updates that the bot gets without a choice.
const KINDS: [&str; 3] = ["message", "edited_message", "callback_query"];

/// A call of the bot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Call {
    /// The method.
    pub method: String,
    /// Its parameters, without the contents of files. Those of a form are texts.
    pub parameters: Value,
}

/// The state, and the number of its changes.
#[derive(Debug)]
pub(super) struct Shared {
    world: Mutex<World>,
    changes: watch::Sender<u64>,
}

/// A chat.
#[derive(Debug, Default)]
pub(super) struct Chat {
    /// `private`, `group` or `supergroup`.
    pub(super) kind: &'static str,
    /// The ids of topics; with any, the chat is a forum.
    pub(super) topics: Vec<i64>,
    pub(super) messages: BTreeMap<i64, Value>,
    pub(super) last_message: i64,
    pub(super) migrated_to: Option<i64>,
    /// When the last messages of the bot were stored.
    pub(super) sent: VecDeque<Instant>,
}

/// The state of the service.
#[derive(Debug)]
pub(super) struct World {
    pub(super) token: String,
    pub(super) has_privacy: bool,
    pub(super) webhook: String,
    pub(super) commands: Value,
    pub(super) chats: BTreeMap<i64, Chat>,
    /// The updates that are not confirmed.
    pub(super) updates: VecDeque<(i64, Value)>,
    /// All updates so far.
    pub(super) history: Vec<Value>,
    pub(super) next_update: i64,
    pub(super) allowed_updates: Vec<String>,
    /// The number of polls. A poll that is not the last one is ended.
    pub(super) polls: u64,
    /// What the bot answered to each press.
    pub(super) queries: BTreeMap<String, Option<String>>,
    pub(super) files: Files,
    pub(super) faults: Faults,
    pub(super) calls: Vec<Call>,
    pub(super) chat_limit: Option<(usize, Duration)>,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self { world: Mutex::new(World::new()), changes: watch::Sender::new(0) }
    }

    /// Locks the state for reading.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes those who wait.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = change(&mut self.world());
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl World {
    fn new() -> Self {
        Self {
            token: TOKEN.to_owned(),
            has_privacy: true,
            webhook: String::new(),
            commands: json!([]),
            chats: BTreeMap::new(),
            updates: VecDeque::new(),
            history: Vec::new(),
            next_update: 1_000,
            allowed_updates: KINDS.map(str::to_owned).to_vec(),
            polls: 0,
            queries: BTreeMap::new(),
            files: Files::default(),
            faults: Faults::default(),
            calls: Vec::new(),
            chat_limit: None,
        }
    }

    /// Adds an update, if the bot wants this kind.
    pub(super) fn add_update(&mut self, kind: &str, content: Value) {
        if !self.allowed_updates.iter().any(|allowed| allowed == kind) {
            return;
        }
        let mut update = Map::from_iter([(kind.to_owned(), content)]);
        update.insert("update_id".to_owned(), self.next_update.into());
        self.history.push(Value::Object(update.clone()));
        self.updates.push_back((self.next_update, Value::Object(update)));
        self.next_update += 1;
    }

    /// Adds each update so far once more, with a new number.
    pub(super) fn repeat_updates(&mut self) {
        for mut update in self.history.clone() {
            if let Some(update) = update.as_object_mut() {
                update.insert("update_id".to_owned(), self.next_update.into());
            }
            self.updates.push_back((self.next_update, update));
            self.next_update += 1;
        }
    }

    pub(super) fn set_allowed_updates(&mut self, kinds: Vec<String>) {
        self.allowed_updates = if kinds.is_empty() { KINDS.map(str::to_owned).to_vec() } else { kinds };
    }
}

/// Returns the bot as a user.
pub(super) fn bot() -> Value {
    json!({"id": BOT_ID, "is_bot": true, "first_name": "Teamster", "username": BOT_NAME})
}

/// Returns the time in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
