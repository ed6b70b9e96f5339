//! The interface of an implementation under test.

use async_trait::async_trait;

use crate::ids::Timestamp;
use crate::store::Store;

/// An implementation under test.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Creates an empty store.
    async fn create(&self) -> Box<dyn Instance>;
}

/// A store under test.
#[async_trait]
pub trait Instance: Send + Sync {
    /// Returns the store.
    fn store(&self) -> &dyn Store;

    /// Closes the store and opens it again. A store in memory does nothing.
    async fn reopen(&mut self);

    /// Sets the clock of the store. A store that uses the times of its callers does nothing.
    async fn set_clock(&mut self, _now: Timestamp) {}
}
