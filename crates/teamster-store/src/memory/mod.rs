//! The model in memory: the rules of the store as plain code. It is the reference for the other implementations.

mod conversations;
mod deliveries;
mod intake;
mod log;
mod maintenance;
mod permissions;
mod schedules;
mod state;
mod work;

use std::sync::{Arc, Mutex, PoisonError};

use state::State;

/// A store in memory, for tests. Clones share their contents. Nothing survives the process.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs an operation. Operations check everything before their first change, so an error leaves no trace.
    fn with<T>(&self, operation: impl FnOnce(&mut State) -> T) -> T {
        operation(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
