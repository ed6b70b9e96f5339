//! The readers: a few connections that read committed data beside the writer.
//!
//! Each read is one short transaction, since a long one would keep the write-ahead log from being copied into the file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use super::failure::{Context, Failure, Outcome};
use super::open::connect_reader;
use super::options::SqliteOptions;
use crate::error::{Result, StoreError};

/// The number of reads at a time. Further callers wait.
const READERS: usize = 4;

/// The number of further reads of tokens: each request needs one, also while all other readers are busy.
const TOKEN_READERS: usize = 1;

/// The number of steps of a search between two checks of its time.
const SEARCH_STEPS: i32 = 1_000;

#[derive(Clone, Debug)]
pub(super) struct Readers {
    pool: Arc<Pool>,
}

#[derive(Debug)]
struct Pool {
    path: PathBuf,
    options: SqliteOptions,
    permits: Arc<Semaphore>,
    token_permits: Arc<Semaphore>,
    /// One search at a time, so that the other readers stay free.
    search_permit: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: &Path, options: SqliteOptions) -> Self {
        Self {
            pool: Arc::new(Pool {
                path: path.to_owned(),
                options,
                permits: Arc::new(Semaphore::new(READERS)),
                token_permits: Arc::new(Semaphore::new(TOKEN_READERS)),
                search_permit: Arc::new(Semaphore::new(1)),
                idle: Mutex::default(),
            }),
        }
    }

    /// Runs a query on a thread for blocking work.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let permit = acquire(&self.pool.permits).await?;
        self.run_with(permit, None, query).await
    }

    /// Runs a query of a token. It does not wait for other reads.
    pub(super) async fn run_for_token<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let permit = acquire(&self.pool.token_permits).await?;
        self.run_with(permit, None, query).await
    }

    /// Runs a query that may have to read a whole table: one at a time, and for a limited time.
    pub(super) async fn search<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let only = acquire(&self.pool.search_permit).await?;
        let permit = acquire(&self.pool.permits).await?;
        let query = move |db: &Connection| {
            let _only = only;
            query(db)
        };
        self.run_with(permit, Some(self.pool.options.search_limit), query).await
    }

    async fn run_with<T: Send + 'static>(
        &self,
        permit: OwnedSemaphorePermit,
        limit: Option<Duration>,
        query: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let pool = Arc::clone(&self.pool);
        let read = spawn_blocking(move || {
            let result = pool.read(limit, query);
            drop(permit);
            result
        });
        read.await.map_err(|_| StoreError::Closed)?
    }

    /// Refuses further reads and closes the idle connections.
    pub(super) fn close(&self) {
        for permits in [&self.pool.permits, &self.pool.token_permits, &self.pool.search_permit] {
            permits.close();
        }
        self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

async fn acquire(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
    Arc::clone(permits).acquire_owned().await.map_err(|_| StoreError::Closed)
}

impl Pool {
    fn read<T>(&self, limit: Option<Duration>, query: impl FnOnce(&Connection) -> Outcome<T>) -> Result<T> {
        let context = Context { path: &self.path, busy_timeout: self.options.busy_timeout };
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut db = match idle {
            Some(db) => db,
            None => connect_reader(context)?,
        };
        let result = match limit {
            None => in_snapshot(&db, query),
            Some(limit) => in_limit(&mut db, limit, query),
        };
        let result = result.map_err(|failure| context.failure("read", failure));
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

/// Runs a query that the database stops after a time.
fn in_limit<T>(db: &mut Connection, limit: Duration, query: impl FnOnce(&Connection) -> Outcome<T>) -> Outcome<T> {
    let start = Instant::now();
    db.progress_handler(SEARCH_STEPS, Some(move || start.elapsed() > limit))?;
    let result = in_snapshot(db, query);
    db.progress_handler(0, None::<fn() -> bool>)?;
    result.map_err(|failure| match failure {
        Failure::Database(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            StoreError::SearchLimit { limit }.into()
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    fn readers(directory: &Path) -> Readers {
        let path = directory.join("store.db");
        Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a)").unwrap();
        Readers::new(&path, SqliteOptions::default())
    }

    /// A query that ends when the sender is dropped.
    fn blocked(until: Receiver<()>) -> impl FnOnce(&Connection) -> Outcome<()> + Send + 'static {
        move |_| {
            _ = until.recv();
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_token_is_read_while_all_other_readers_are_busy() {
        let directory = tempfile::tempdir().unwrap();
        let readers = readers(directory.path());
        let mut senders = Vec::new();
        for _ in 0..READERS {
            let (sender, until) = channel();
            let busy = readers.clone();
            tokio::spawn(async move { busy.run(blocked(until)).await });
            senders.push(sender);
        }
        while readers.pool.permits.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(readers.run_for_token(|_| Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn searches_leave_the_other_readers_free() {
        let directory = tempfile::tempdir().unwrap();
        let readers = readers(directory.path());
        let mut senders = Vec::new();
        for _ in 0..10 {
            let (sender, until) = channel();
            let busy = readers.clone();
            tokio::spawn(async move { busy.search(blocked(until)).await });
            senders.push(sender);
        }
        while readers.pool.permits.available_permits() == READERS {
            tokio::task::yield_now().await;
        }
        assert_eq!(readers.pool.permits.available_permits(), READERS - 1);
        assert_eq!(readers.run(|_| Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn an_endless_search_is_stopped_and_the_reader_stays_usable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        drop(readers(directory.path()));
        let limit = Duration::from_millis(50);
        let readers = Readers::new(&path, SqliteOptions { search_limit: limit, ..SqliteOptions::default() });
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
        let count = |sql: &'static str| move |db: &Connection| Ok(db.query_row(sql, [], |row| row.get::<_, i64>(0))?);
        let stopped = readers.search(count(endless)).await.unwrap_err();
        assert!(matches!(stopped, StoreError::SearchLimit { .. }), "{stopped:?}");
        let finite = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT max(i) FROM n";
        assert_eq!(readers.run(count(finite)).await.unwrap(), 20_000);
    }
}
