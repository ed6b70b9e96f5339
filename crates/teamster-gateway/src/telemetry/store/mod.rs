//! A store that counts the operations of another store, and measures its writes.
//!
//! Each durable step of the engine is one call of the store. Counting here needs no code in the engine, and counts only what is
//! durable.

mod observed;
mod plain;

use std::sync::Arc;
use std::time::Instant;

use teamster_store::{Result, Store};

use super::metrics::Metrics;

/// Counts and measures the operations of a store.
pub(crate) struct MeasuredStore {
    inner: Arc<dyn Store>,
    metrics: Metrics,
}

impl MeasuredStore {
    pub(crate) fn new(inner: Arc<dyn Store>, metrics: Metrics) -> Self {
        Self { inner, metrics }
    }

    /// Measures a write.
    async fn timed<T>(&self, operation: &'static str, write: impl Future<Output = Result<T>>) -> Result<T> {
        self.counted(operation, write, |_| {}).await
    }

    /// Measures a write, and counts its outcome if it has succeeded.
    async fn counted<T>(
        &self,
        operation: &'static str,
        write: impl Future<Output = Result<T>>,
        count: impl FnOnce(&T),
    ) -> Result<T> {
        let _uncounted = self.metrics.write_started();
        let started = Instant::now();
        let result = write.await;
        self.metrics.write_ended(operation, started.elapsed(), result.is_err());
        result.inspect(count)
    }
}

impl std::fmt::Debug for MeasuredStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("MeasuredStore").finish_non_exhaustive()
    }
}
