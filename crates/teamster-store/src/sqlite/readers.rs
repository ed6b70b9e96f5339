//! The readers: a few connections that read committed data beside the writer.
//!
//! Each read is one short transaction, since a long one would keep the write-ahead log from being copied into the file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::failure::{Context, Outcome};
use super::open::connect_reader;
use crate::error::{Result, StoreError};

/// The number of reads at a time. Further callers wait.
const READERS: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct Readers {
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    path: PathBuf,
    busy_timeout: Duration,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: &Path, busy_timeout: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(READERS));
        Self { pool: Arc::new(Pool { path: path.to_owned(), busy_timeout, permits, idle: Mutex::default() }) }
    }

    /// Runs a query on a thread for blocking work.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.pool.permits).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let pool = Arc::clone(&self.pool);
        let read = spawn_blocking(move || {
            let result = pool.read(query);
            drop(permit);
            result
        });
        read.await.map_err(|_| StoreError::Closed)?
    }

    /// Refuses further reads and closes the idle connections.
    pub(super) fn close(&self) {
        self.pool.permits.close();
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Pool {
    fn read<T>(&self, query: impl FnOnce(&Connection) -> Outcome<T>) -> Result<T> {
        let context = Context { path: &self.path, busy_timeout: self.busy_timeout };
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = match idle {
            Some(db) => db,
            None => connect_reader(context)?,
        };
        let result = in_snapshot(&db, query).map_err(|failure| context.failure("read", failure));
        if db.is_autocommit() && !self.permits.is_closed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
        }
        result
    }
}

fn in_snapshot<T>(db: &Connection, query: impl FnOnce(&Connection) -> Outcome<T>) -> Outcome<T> {
    let snapshot = db.unchecked_transaction()?;
    let result = query(&snapshot)?;
    snapshot.finish()?;
    Ok(result)
}
